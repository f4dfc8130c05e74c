# Runs a command on a terminal of its own and answers it: on_terminal.py ANSWER COMMAND… The answer is typed when a
# question ("[Y/n]") stands there; "interrupt" types Ctrl-C. Prints what the terminal showed; exits as the command did.
import os
import pty
import sys

answer = "\x03" if sys.argv[1] == "interrupt" else sys.argv[1] + "\n"
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
shown = b""
is_answered = False
while True:
    try:
        piece = os.read(terminal, 65536)
    except OSError:  # Linux: the other side is closed
        break
    if not piece:
        break
    shown += piece
    if b"[Y/n]" in shown and not is_answered:
        os.write(terminal, answer.encode())
        is_answered = True
sys.stdout.buffer.write(shown.replace(b"\r\n", b"\n"))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
