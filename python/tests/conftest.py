import signal

# Who starts programs in the background may have them ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
