"""Parts of record.py: guests are started, told when to record, watched and ended here."""
