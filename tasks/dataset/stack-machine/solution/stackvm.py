import re
import sys

INTEGER = re.compile(r"[+-]?[0-9]+")
ARITHMETIC = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}


class MachineError(Exception):
    pass


class Machine:
    def __init__(self) -> None:
        self.stack: list[int] = []
        self.defined: dict[str, list[str]] = {}

    def pop(self, count: int) -> list[int]:
        if len(self.stack) < count:
            raise MachineError("stack underflow")
        taken = self.stack[-count:]
        del self.stack[-count:]
        return taken

    def run(self, words: list[str]) -> None:
        at = 0
        while at < len(words):
            word = words[at]
            at += 1
            if word == ":":
                end = words.index(";", at)
                self.defined[words[at]] = words[at + 1 : end]
                at = end + 1
            elif word == "times":
                (count,) = self.pop(1)
                for _ in range(count):
                    self.step(words[at])
                at += 1
            else:
                self.step(word)

    def step(self, word: str) -> None:
        if word in self.defined:
            self.run(self.defined[word])
        elif word in ARITHMETIC:
            a, b = self.pop(2)
            self.stack.append(ARITHMETIC[word](a, b))
        elif word == "dup":
            (a,) = self.pop(1)
            self.stack += [a, a]
        elif word == "drop":
            self.pop(1)
        elif word == "swap":
            a, b = self.pop(2)
            self.stack += [b, a]
        elif word == "over":
            a, b = self.pop(2)
            self.stack += [a, b, a]
        elif word == ".":
            print(self.pop(1)[0])
        elif INTEGER.fullmatch(word):
            self.stack.append(int(word))
        else:
            raise MachineError(f"unknown word {word}")


with open(sys.argv[1], encoding="utf-8") as program:
    source = [word for line in program for word in line.split("#", 1)[0].split()]
try:
    Machine().run(source)
except MachineError as error:
    print(f"error: {error}")
    sys.exit(1)
