"""Finds the comment that belongs to each declaration of a header, by the header's layout: see README.md, "What a header says"."""
import bisect
import functools
import re


class Comment:
    def __init__(self, text, begin, first, last):
        self.begin, self.first, self.last = begin, first, last  # byte offset, first line, last line
        self.raw = text

    @functools.cached_property
    def text(self):
        """The text without the comment marks, with its lines."""
        lines = self.raw[2:-2].strip().split("\n")
        return "\n".join([lines[0].rstrip()] + [re.sub(r"^ ?\* ?", "", line).rstrip() for line in lines[1:]]).strip()

    @property
    def line(self):
        """The text in one line."""
        return " ".join(self.text.split())

    @functools.cached_property
    def is_section(self):
        return self.text.startswith("----")


class Layout:
    """One header's lines and comments."""

    def __init__(self, text):
        self.text = text
        self.starts = [0] + [m.end() for m in re.finditer("\n", text)]
        self.comments = [Comment(m.group(), m.start(), self.line_of(m.start()), self.line_of(m.end() - 1))
                         for m in re.finditer(r"/\*.*?\*/", text, re.S)]
        self.lines = text.split("\n")
        alone = [c for c in self.comments if not self.before(c).strip()]
        self.leads = {c.last + 1: c for c in alone if not c.is_section}
        self.trails = {c.first: c for c in reversed(self.comments) if c not in alone}

    def before(self, comment):
        """Returns the part of the comment's first line that precedes the comment."""
        return self.lines[comment.first - 1][:comment.begin - self.starts[comment.first - 1]]

    def line_of(self, offset):
        return bisect.bisect_right(self.starts, offset)

    def introduction(self):
        return self.comments[0].text if self.comments and self.comments[0].first == 1 else ""

    def lead(self, line):
        """Returns the comment that stands alone and ends on the line before this one; forward declarations of structs may stand between.
        A section's head is not such a comment."""
        while line > 1 and re.fullmatch(r"struct \w+;", self.lines[line - 2]):
            line -= 1
        return self.leads.get(line)

    def trail(self, first, last):
        """Returns the first comment that follows code on one of the lines `first` to `last`, or None."""
        return next((self.trails[line] for line in range(first, last + 1) if line in self.trails), None)

    def section(self, line):
        """Returns the head of the section that contains the line, or None."""
        heads = [c for c in self.comments if c.is_section and c.last < line]
        return heads[-1] if heads else None

    def block(self, line):
        """Returns the first line of the block that contains this line. Empty lines separate blocks."""
        while line > 1 and self.lines[line - 2].strip():
            line -= 1
        return line

    def since(self, first, last, name):
        """Returns "minor 1" for a field that the lines declare as TW_SINCE_1(name), "file_system minor 1" for one that they declare as
        TW_FILE_SYSTEM_SINCE_1(name), or None."""
        text = re.sub(r"/\*.*?(\*/|$)", " ", " ".join(self.lines[first - 1:last]))  # a comment marks nothing
        match = re.search(rf"\bTW_(?:([A-Z_]+)_)?SINCE_(\d+)\({name}\)", text)
        return f"{match[1].lower()} minor {match[2]}" if match and match[1] else match and f"minor {match[2]}"

    def mark(self, offset):
        """Returns the letter of the mark TW_R, TW_O or TW_C before the field at the offset, or None."""
        before = re.sub(r"/\*.*?\*/", " ", self.text[:offset], flags=re.S)
        match = re.search(r"TW_([ROC])\s*$", before[max(before.rfind(";"), before.rfind("{")) + 1:])
        return match[1] if match else None
