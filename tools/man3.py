#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a manual page of section 3 from a text in roff and a public header. The header's comments are the reference, so nothing is written twice.

Usage: man3.py TEXT.3.in VERSION HEADER [EXAMPLE] > PAGE.3

In the text, each alone on a line: @names@, the functions; @types@, the constants, structs and enums as in the header; @functions@, each with its comment;
@example@, the example's file. Anywhere: @version@."""
import pathlib
import re
import sys

LINE = "\x01" # marks the start and the end of a line that must not be folded
PLUMBING = r'#pragma[^\n]*\n|#if[^\n]*\n#pragma[^\n]*\n#endif[^\n]*\n|#ifdef __cplusplus\n.*?\n#endif\n?|#include[^\n]*\n'
ITEM = re.compile(r"""
	(?P<comment>/\*.*?\*/)
	| (?P<define>\#define[^\n]*)
	| (?P<type>(?:struct|enum)\s+\w+\s*\{.*?\n\};)
	| (?P<opaque>struct\s+\w+;)
	| (?P<function>[a-z_][^;{}]*?\b(?P<name>sonde_\w+)\([^;{}]*\);)
	| (?P<gap>\n[ \t]*(?=\n))
""", re.VERBOSE | re.DOTALL)


def said(comment):
	"""A comment's text on one line, as a sentence. Indented lines stay lines."""
	text = re.sub(r"\n[ \t]*\*   +([^\n]*)(?=\n)", lambda match: LINE + match.group(1) + LINE, comment[2:-2]).replace(LINE + LINE, LINE)
	text = re.sub(r"\s*\n\s*\*?\s*", " ", text).strip()
	if re.match(r"[a-z][a-z-]*[ ,:;]", text) and not re.match(r"(enum|struct) ", text):
		text = text[0].upper() + text[1:]
	return text if text[-1:] in ".:?-" else text + "."


def read_header(text):
	"""[(kind, source, text)]: the declarations in order, each with the comments before it and at the end of its line; sections as ("section", title, "")."""
	first = re.search(r"\*/\s*(/\*.*?\*/)", text, re.DOTALL) # after the licence: the header's own comment
	text = re.sub(PLUMBING, "", text[first.end():], flags=re.DOTALL)
	items, before, at = [], "", 0
	for match in ITEM.finditer(text):
		left = text[at:match.start()]
		if left.strip():
			sys.exit("not understood: %r" % left.strip()[:200])
		kind, source, at = match.lastgroup if match.lastgroup != "name" else "function", match.group(0), match.end()
		if kind == "gap":
			before = "" if items and items[-1][0] == "remark" else before
		elif kind == "comment" and re.match(r"/\* -{3,}", source):
			items.append(["section", said(source).strip("-. "), ""])
		elif kind == "comment" and "\n" not in left and items and items[-1][0] in ("function", "define", "opaque") and not before:
			items[-1][2] = (items[-1][2] + " " + said(source)).strip()
		elif kind == "comment":
			before = said(source)
		else:
			items.append([kind, source, before])
			before = ""
	return items


def roff(text):
	return re.sub(r"(?m)^([.'])", r"\\&\1", text.replace("\\", "\\e").replace("-", "\\-"))


def prose(text):
	"""Highlights text in backquotes and the names of our functions."""
	text = re.sub(r"`([^`]+)`", r"\\fI\1\\fR", roff(text))
	text = re.sub("%s(.*)%s ?" % (LINE, LINE), lambda match: "\n.nf\n  " + match.group(1).replace(LINE, "\n  ") + "\n.fi\n", text)
	return re.sub(r"\b(sonde_\w+)\b(?!\\fR)", r"\\fB\1\\fR", text)


def types(items):
	lines = []
	for kind, source, text in items:
		if kind in ("type", "define", "opaque"):
			lines += [".PP", prose(text)] if text and kind == "type" else []
			lines += [".PP" if kind == "type" else ".sp 0", ".nf", roff(source.expandtabs(4)), ".fi"]
			lines += [prose(text)] if text and kind != "type" else []
	return lines


def functions(items):
	lines = []
	for kind, source, text in items:
		if kind == "section":
			lines += [".SS " + roff(source[:1].upper() + source[1:])]
		elif kind == "function":
			declared = re.sub(r"\s+", " ", source.replace("__attribute__((warn_unused_result)) ", ""))
			lines += [".PP", ".nf"] + ["\\fB%s\\fR" % roff(line) for line in folded(declared)] + [".fi"]
			lines += [".RS 4", prose(text), ".RE"] if text else []
	return lines


def folded(declared, width=90):
	"""Splits a long declaration into several lines, at its commas."""
	lines, indent = [""], " " * (declared.index("(") + 1)
	for part in re.split(r"(?<=,) ", declared):
		if lines[-1].strip() and len(lines[-1]) + len(part) > width:
			lines.append(indent if len(indent) < 40 else " " * 8)
		lines[-1] += (" " if lines[-1].strip() else "") + part
	return lines


def main():
	template, version, header, *examples = sys.argv[1:]
	items = read_header(pathlib.Path(header).read_text(encoding="utf-8"))
	parts = {
		"@names@": [",\n".join([""] + [match for kind, source, _ in items if kind == "function" for match in re.findall(r"\b(sonde_\w+)\(", source)[:1]]).lstrip(",\n")],
		"@types@": types(items),
		"@functions@": functions(items),
	}
	for example in examples:
		parts["@example@"] = [".PP", ".nf", roff(pathlib.Path(example).read_text(encoding="utf-8").split("\n", 1)[1].rstrip("\n").expandtabs(4)), ".fi"]
	for line in pathlib.Path(template).read_text(encoding="utf-8").replace("@version@", version).splitlines():
		print("\n".join(parts.get(line, [line])))


main()
