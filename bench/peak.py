"""peak.py COMMAND…: runs it and prints "peak N MiB", the most memory that the process had resident."""
import os
import sys

child = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(child, 0)
print(f"peak {usage.ru_maxrss / 1024:.1f} MiB", flush=True)
sys.exit(os.waitstatus_to_exitcode(status))
