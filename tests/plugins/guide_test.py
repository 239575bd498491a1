"""Tests of the guides in plugins/: every program in them compiles without a warning, and every command runs, in their order and against an
installed Thalweg, and prints the output on the page.

A fenced block that begins with the name of a file is that file, in the current folder of the commands. `sh` blocks run in one shell per
page. A `text` block is the output of the block before it; `...` in it stands for any text on its line."""
import re
import subprocess

from installed import PREFIX, SOURCE, WORK, check, environment, finish, install

GUIDES = ["first_op", "first_device", "moving", "stability"]
WARNINGS = "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror"
END = "---- end of block"


class Shell:
    """A shell that keeps its folder from block to block."""

    def __init__(self, folder):
        folder.mkdir()
        self.process = subprocess.Popen(["bash", "-u"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        text=True, env=environment(prefix=str(PREFIX)))

    def run(self, block):
        """Runs a block. Returns (exit status, output)."""
        self.process.stdin.write(f"set -eo pipefail; trap 'echo \"{END} $?\"; exit' ERR\n{block}\nset +e; trap - ERR; echo '{END} 0'\n")
        self.process.stdin.flush()
        said = ""
        for line in self.process.stdout:
            if line.startswith(END):
                return int(line.split()[-1]), said
            said += line
        return -1, said

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def fits(page, said):
    """Returns whether `said` matches the page line by line."""
    return re.fullmatch(".*".join(re.escape(part) for part in page.split("...")), said) is not None


def blocks(text):
    return re.findall(r"^```(\w+)\n(.*?)^```$", text, re.M | re.S)


def test(guide):
    shell, said = Shell(WORK / guide), None
    for kind, text in blocks((SOURCE / "plugins" / f"{guide}.md").read_text()):
        name = re.match(r"(?:/\* |// )([\w.]+)", text)
        if kind == "text":
            check(fits(text, said), f"{guide}: it prints what the page says", f"---- the page:\n{text}---- it printed:\n{said}----")
        elif kind == "sh":
            warned = re.sub(r"^(cc|c\+\+) ", rf"\1 {WARNINGS} ", text, flags=re.M)
            status, said = shell.run(warned)
            if not check(status == 0, f"{guide}: {text.splitlines()[-1]}", said):
                break
        elif check(name is not None, f"{guide}: a block of {kind} names its file", text):
            shell.run(f"cat > {name[1]} <<'END OF FILE'\n{text}END OF FILE")
    shell.close()


def main():
    check(fits("a ... c\n", "a b c\n") and not fits("a ... c\n", "a b d\n") and not fits("a\n...\n", "a\nb\nc\n"), "the test knows what fits")
    readme = (SOURCE / "plugins/README.md").read_text()
    for guide in GUIDES:
        check(f"`{guide}.md`" in readme, f"plugins/README.md leads to {guide}.md")
    install()
    for guide in GUIDES:
        test(guide)
    finish()


main()
