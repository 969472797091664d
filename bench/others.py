"""How much of the machine other processes take while something is measured."""
import os, threading, time


def spent(known):
    """Seconds of processor time of each process whose name is not one of `known`, by its number."""
    tick, found = os.sysconf("SC_CLK_TCK"), {}
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            text = open(f"/proc/{number}/stat").read()
        except OSError:
            continue
        name, fields = text[text.index("(") + 1:text.rindex(")")], text[text.rindex(")") + 2:].split()
        if name not in known and int(number) != os.getpid():
            found[number] = (int(fields[11]) + int(fields[12])) / tick
    return found


class Others:
    """Samples the processes that are not ours, until the block ends: `share` is what they took, in cores."""

    def __init__(self, *known):
        self.known, self.share = set(known), 0.0

    def __enter__(self):
        self.done, self.total = threading.Event(), 0.0
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def watch(self):
        began, before = time.monotonic(), spent(self.known)
        ended = False
        while not ended:
            ended = self.done.wait(0.25)
            now = spent(self.known)
            self.total += sum(seconds - before.get(number, 0.0) for number, seconds in now.items())
            before = now
        self.share = self.total / (time.monotonic() - began)

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()
