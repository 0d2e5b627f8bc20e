"""What the programs that run guests of QEMU share: sim/trace/record.py, devices/nic/guest/run.py."""
