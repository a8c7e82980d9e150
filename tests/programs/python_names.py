# SPDX-License-Identifier: Apache-2.0
"""python_names.py: makes code objects with all kinds of names, and frames in all kinds of places, prints what each is to be called, and waits for the end of stdin. First a line
"python MINOR ADDRESS_OF_CODE_TYPE", then "code ADDRESS COOKIE WHERE START_LINE LINE NAME FILE" each (the texts as hexadecimal UTF-8), then "end". Runs in every Python from 3.6 on."""
import dis
import sys
import threading
import time
import types
import unicodedata

NAME_BYTES, FILE_BYTES = 512, 1024
KEEP = []


def shown(text, size):
	"""As struct runtime_function has it."""
	text = "".join("\ufffd" if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") or c in "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069" else c
		for c in text)
	encoded = text.encode("utf-8")
	if len(encoded) >= size:
		encoded = encoded[:size - 1 - 3].decode("utf-8", "ignore").encode("utf-8") + "\u2026".encode("utf-8")
	return encoded.hex() or "-"


def tell(code, where, line, name=None):
	KEEP.append(code)
	name = name or (code.co_qualname if sys.version_info >= (3, 11) else code.co_name)
	cookie = (code.co_firstlineno ^ code.co_flags << 16 ^ code.co_argcount << 8 ^ code.co_kwonlyargcount << 4) & 0xffffffff
	print("code %x %x %x %d %d %s %s" % (id(code), cookie, where & 0xffffffffffffffff, code.co_firstlineno, line or 0, shown(name, NAME_BYTES), shown(code.co_filename, FILE_BYTES)))


def tell_start(code, name=None):
	"""A frame that has run nothing yet."""
	tell(code, -1, code.co_firstlineno, name)


def tell_inner(code):
	tell_start(code)
	for constant in code.co_consts:
		if isinstance(constant, types.CodeType):
			tell_inner(constant)


class Path(str):
	pass


NAMES = ["plain", "Stra\xdfe", "\u0439\u0446\u0443\u043a\u0435\u043d", "\u6f22\u5b57", "\U00020000\U00020001", "x" * 511,
	"x" * 512, "x" * 510 + "\xe9", "\xe9" * 300, "\u6f22" * 170 + "x", "\u6f22" * 171, "\U00020000" * 127 + "abc", "\U00020000" * 400, "y" * 100000, "z" * 8000 + "\U00020000"]
FILES = ["<string>", "/srv/stra\xdfe/a.py", "/\u6f22\u5b57.py", "/\U0001f600.py", "/undecodable\udcff\udc80.py", Path("/derived/from/str.py"), Path("/derived/\u6f22.py"),
	"/tab\tand\nline\x7f\x85\u2028\u202e.py", "/" + "d" * 2000 + ".py", "/" + "\u6f22" * 341, "/" + "\u6f22" * 500, "/1" + "\U0001f600" * 600, ""]
SOURCE = """
class Outer:
	class Inner:
		def method(self):
			def local(*, only, words):
				return [lambda: x for x in (yield)]
			return local
		@property
		async def other(self, a, b=1, *c, d, **e):
			return {k: v for k, v in a}
	""" + "\n" * 5000 + """
	last = lambda self: (
		self)
"""


def names():
	for name in NAMES:
		tell_inner(compile("def %s(a, *, b): pass" % name, "<names>", "exec"))
	for name in FILES:
		tell_start(compile("def f(a, *, b): pass", name, "exec"))
	tell_inner(compile(SOURCE, "<source>", "exec"))
	code = compile("1", "<nameless>", "eval")
	if sys.version_info >= (3, 11):
		tell_start(code.replace(co_qualname="", co_name=""), "<no name>")
	elif sys.version_info >= (3, 8):
		tell_start(code.replace(co_name=""), "<no name>")
	if sys.version_info >= (3, 10): # a table that says nothing
		tell(code.replace(co_linetable=b""), 0, 0)


def lines_of(code):
	"""[(offset, line or None)], as the interpreter has them."""
	if sys.version_info >= (3, 10):
		return [(start, line) for start, end, line in code.co_lines() if start < end]
	return list(dis.findlinestarts(code))


def places():
	"""Offsets in a table that is larger than what is read of it at once, and such as have no line."""
	code = compile("".join("a = [%d,\n  b]\n" % i for i in range(15000)), "<long>", "exec")
	lines = lines_of(code)
	for where, line in lines[5::len(lines) // 50]:
		tell(code, where, line)
	value = 1
	for code in (run.__code__, generator.__code__, Context.__exit__.__code__, (lambda: value).__code__):
		seen = False
		for where, line in lines_of(code):
			seen = seen or line is not None
			tell(code, where, line if seen else code.co_firstlineno) # before its first line a frame was only just entered


def call(function, *arguments):
	return function(
		*arguments
	)


def many_lines(sleep, seconds):
	value = [
		1,
		call(
			call,

			lambda seconds: sleep(
				seconds

			), seconds
		),
		3,
	]
	return value


class Context:
	def __enter__(self):
		return self

	def __exit__(self, *_):
		for _ in sorted([3, 2, 1], key=lambda x:
			many_lines(time.sleep,
				1000)
		):
			pass


def generator():
	with Context(
	) as context:
		yield 1
	print(context)


def run():
	try:
		for x in (
			y
			for y in generator()
		):
			str(x)
	finally:
		print(
		)


def frames():
	"""A thread that sleeps below many calls; and a generator that has not begun."""
	thread = threading.Thread(target=run, daemon=True)
	thread.start()
	names_there = []
	while names_there[:1] != ["<lambda>"]:
		time.sleep(0.01)
		frame, there = sys._current_frames()[thread.ident], []
		while frame:
			there.append(frame)
			frame = frame.f_back
		names_there = [frame.f_code.co_name for frame in there]
	for frame in there:
		tell(frame.f_code, frame.f_lasti, frame.f_lineno)
	KEEP.append(generator())
	waiting = KEEP[-1].gi_frame
	tell(waiting.f_code, waiting.f_lasti, waiting.f_lineno)


print("python %d %x" % (sys.version_info[1], id(types.CodeType)))
names()
places()
frames()
print("end")
sys.stdout.flush()
sys.stdin.read()
