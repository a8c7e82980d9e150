// SPDX-License-Identifier: Apache-2.0
/* Runs what the compilers have code of their own for (vmIntrinsics.hpp, stubs, barriers, slow paths), one kind at a time, for a test that stops it at each instruction. On stdin
 * it takes names of scenarios, one a line: it ends the last one and starts a thread for the next, and prints "T TID CLASS", then the methods that call CLASS.go, each as
 * "Class.method File line", and "E"; "." for a name that is not known. Without arguments left (an end of stdin) it ends. "?" prints all names, in one line.
 *
 * At any moment a stack of that thread is: Thread.run, JavaCode.run, chainA, chainB, chainC, or the first few of them, and then
 *  - CLASS.go, and above it methods of the library, and of this class only those whose name begins with h_;
 *  - or calls of `stale`, which leave return addresses below where `go` will have its frame. These call nothing else.
 * All of this class is compiled with -XX:CompileCommand=dontinline,JavaCode*.*. Java 8 and newer. */
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.ref.WeakReference;
import java.lang.reflect.Method;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.MessageDigest;
import java.security.Signature;
import java.security.spec.AlgorithmParameterSpec;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.AtomicReference;
import java.util.zip.Adler32;
import java.util.zip.CRC32;
import java.util.zip.Checksum;
import java.util.zip.Deflater;
import java.util.zip.Inflater;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.IvParameterSpec;
import javax.crypto.spec.SecretKeySpec;

public class JavaCode {
	/* A scenario. `n` counts up. */
	abstract static class Work {
		volatile boolean isStopped;

		abstract void go(int n) throws Exception;
	}

	static volatile long sink;
	static volatile double sinkDouble;
	static volatile Object sinkObject;

	/* --- the calls below a scenario ----------------------------------------------------------------------------------------------- */

	static long stale(int depth, long a, long b) {
		return depth <= 0 ? a + b : stale2(depth - 1, a + 1, b, a * b) + 1;
	}

	static long stale2(int depth, long a, long b, long c) {
		return depth <= 0 ? a ^ b : stale(depth - 1, a ^ b, c) + a * 3 + b * 5 + c * 7;
	}

	static long chainC(Work work, int n, long unused) throws Exception {
		long sum = stale(n % 13, n, 3);
		work.go(n);
		return sum + stale2(n % 7, n, 1, 2);
	}

	static long chainB(Work work, int n, long a, double b, int c, long d, double e, float f, int g, long h, double i, long j, double k, double l, double m, double o, double p,
			double q) throws Exception {
		long x = a * 3 + c, y = d ^ h, z = j - a, v = (long) (b * e), u = (long) (f + i + k + l + m + o + p + q);
		x += chainC(work, n, y);
		return x + y * z + v * u + a + c + d + g + h + j + (long) (b + e + f + i);
	}

	static long chainA(Work work, int n) throws Exception {
		return chainB(work, n, n, 1.5, 2, 3, 4.5, 5.5f, 6, 7, 8.5, 9, 10.5, 11.5, 12.5, 13.5, 14.5, 15.5) + 1;
	}

	static void run(Work work) throws Exception {
		for (int n = 0; !work.isStopped; n = (n + 1) & 0xfffff)
			sink += chainA(work, n);
	}

	static final class Tell extends Work {
		void go(int n) throws Exception {
			StringBuilder text = new StringBuilder();
			StackTraceElement[] stack = Thread.currentThread().getStackTrace();
			text.append("T ").append(Files.readSymbolicLink(Paths.get("/proc/thread-self")).getFileName()).append(' ').append(Thread.currentThread().getName()).append('\n');
			for (int i = 2; i < stack.length; i++)
				text.append(stack[i].getClassName()).append('.').append(stack[i].getMethodName()).append(' ').append(stack[i].getFileName()).append(' ').append(stack[i].getLineNumber()).append('\n');
			System.out.print(text.append("E\n"));
			System.out.flush();
			isStopped = true;
		}
	}

	static Work last;

	static void start(String name) throws Exception {
		Work work;
		try {
			Class<?> found;
			try {
				found = Class.forName("JavaCode$" + name);
			} catch (ClassNotFoundException e) {
				found = Class.forName("JavaCode17$" + name);
			}
			work = (Work) found.getDeclaredConstructor().newInstance();
			for (int n = 0; n < 3; n++)
				work.go(n);
		} catch (Throwable e) { // there is no such thing in this version
			System.err.println(name + ": " + e + " " + e.getCause());
			System.out.println(".");
			System.out.flush();
			return;
		}
		Class<?> declared = work.getClass();
		while (Arrays.stream(declared.getDeclaredMethods()).noneMatch(method -> method.getName().equals("go")))
			declared = declared.getSuperclass();
		Thread thread = new Thread(declared.getName()) {
			public void run() {
				try {
					JavaCode.run(new Tell());
					JavaCode.run(work);
				} catch (Throwable e) {
					e.printStackTrace();
					Runtime.getRuntime().halt(3);
				}
			}
		};
		thread.setDaemon(true);
		last = work;
		thread.start();
	}

	static String names(String of) {
		StringBuilder text = new StringBuilder();
		try {
			for (Class<?> one : Class.forName(of).getDeclaredClasses())
				if (Work.class.isAssignableFrom(one) && !java.lang.reflect.Modifier.isAbstract(one.getModifiers()) && one != Tell.class)
					text.append(one.getSimpleName()).append(' ');
		} catch (Throwable e) {
			return "";
		}
		return text.toString();
	}

	public static void main(String[] args) throws Exception {
		BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
		for (String line; (line = in.readLine()) != null;) {
			if (last != null)
				last.isStopped = true;
			if (line.equals("?")) {
				System.out.println(names("JavaCode") + names("JavaCode17"));
				System.out.flush();
			} else {
				start(line);
			}
		}
	}

	/* --- strings ------------------------------------------------------------------------------------------------------------------- */

	static String repeat(String text, int count) {
		StringBuilder all = new StringBuilder();
		for (int i = 0; i < count; i++)
			all.append(text);
		return all.toString();
	}

	static final String LATIN = repeat("abcdefghijklmnopqrstuvwxyz0123456789", 8), UTF16 = repeat("абвгдежabc", 20);
	static final String[] LATINS = new String[64], UTF16S = new String[64], NEEDLES = { "9abz", "9zq1x", "7", "yz0123456789abcdefghijklmnopqrstuvwxyz01", "3456789abcdefgh", "zz" },
		NEEDLES16 = { "жa", "caб", "абвгдежabcабвгдежabd", "г", "вгж", "ежabcабвгz" };

	static {
		for (int i = 0; i < 64; i++) {
			LATINS[i] = LATIN.substring(i & 7, (i & 7) + i);
			UTF16S[i] = UTF16.substring(i & 7, (i & 7) + i);
		}
	}

	static final class IndexOf extends Work { // with a needle that the compiler does not know
		void go(int n) {
			sink += LATIN.indexOf(NEEDLES[n % 6]) + LATINS[n & 63].indexOf(NEEDLES[n % 5]) + LATIN.indexOf(NEEDLES[n % 6], n & 31);
			sink += LATIN.contains(NEEDLES[n % 4]) ? 1 : 0;
		}
	}

	static final class IndexOfUtf16 extends Work {
		void go(int n) {
			sink += UTF16.indexOf(NEEDLES16[n % 6]) + UTF16S[n & 63].indexOf(NEEDLES16[n % 5]) + UTF16.indexOf(NEEDLES16[n % 6], n & 31);
		}
	}

	static final class IndexOfMixed extends Work { // Latin 1 in UTF-16
		void go(int n) {
			sink += UTF16.indexOf(NEEDLES[n % 6]) + UTF16S[n & 63].indexOf("abc") + UTF16.indexOf("bc") + UTF16.indexOf(NEEDLES[(n + 1) % 6], n & 31);
		}
	}

	static final class IndexOfConstant extends Work {
		void go(int n) {
			sink += LATIN.indexOf("9zq1x") + LATINS[n & 63].indexOf("mn") + LATIN.indexOf("0123456789abcdefghijklmnopqrstuvwx!") + LATINS[n & 63].indexOf("fghijklmno");
			sink += UTF16.indexOf("жя") + UTF16S[n & 63].indexOf("вг") + UTF16.indexOf("абвгдежabcабвгдежabя");
		}
	}

	static final class IndexOfChar extends Work {
		void go(int n) {
			sink += LATIN.indexOf('!') + LATINS[n & 63].indexOf('a' + n % 30) + UTF16.indexOf('я') + UTF16S[n & 63].indexOf('г') + LATINS[n & 63].lastIndexOf('c') + UTF16.lastIndexOf("вг");
		}
	}

	static final class CompareStrings extends Work {
		void go(int n) {
			sink += LATINS[n & 63].compareTo(LATINS[(n + 8) & 63]) + UTF16S[n & 63].compareTo(UTF16S[(n + 8) & 63]) + LATINS[n & 63].compareTo(UTF16S[n & 63])
				+ UTF16S[n & 63].compareTo(LATINS[(n + 1) & 63]) + LATIN.compareTo(LATINS[n & 63]);
		}
	}

	static final class EqualStrings extends Work {
		void go(int n) {
			sink += (LATINS[n & 63].equals(LATINS[(n + 8) & 63]) ? 1 : 0) + (UTF16S[n & 63].equals(UTF16S[(n + 64) & 63]) ? 1 : 0) + (LATIN.regionMatches(n & 7, LATIN, 36 + (n & 7), 99) ? 1 : 0)
				+ (LATIN.regionMatches(true, n & 7, LATIN, 36, 40) ? 1 : 0) + (LATIN.startsWith(LATINS[n & 56]) ? 1 : 0) + (LATINS[n & 63].equalsIgnoreCase(LATINS[(n + 1) & 63]) ? 1 : 0);
		}
	}

	static final class HashStrings extends Work {
		char[] letters = UTF16.toCharArray(), plain = LATIN.toCharArray();

		void go(int n) {
			sink += new String(letters, n & 7, n & 63).hashCode() + new String(plain, n & 7, n & 127).hashCode();
		}
	}

	static final class Encode extends Work {
		byte[] utf8 = UTF16.getBytes(StandardCharsets.UTF_8), ascii = LATIN.getBytes(StandardCharsets.US_ASCII);

		void go(int n) {
			sink += LATINS[n & 63].getBytes(StandardCharsets.UTF_8).length + UTF16S[n & 63].getBytes(StandardCharsets.UTF_8).length + LATINS[n & 63].getBytes(StandardCharsets.ISO_8859_1).length
				+ UTF16S[n & 63].getBytes(StandardCharsets.ISO_8859_1).length + LATIN.getBytes(StandardCharsets.US_ASCII).length + UTF16S[n & 63].getBytes(StandardCharsets.UTF_16).length;
			sink += new String(utf8, StandardCharsets.UTF_8).length() + new String(ascii, 0, n & 255, StandardCharsets.UTF_8).length() + new String(ascii, StandardCharsets.US_ASCII).length();
		}
	}

	static final class EncodeBuffers extends Work {
		ByteBuffer out = ByteBuffer.allocate(4096);

		void go(int n) {
			out.clear();
			StandardCharsets.ISO_8859_1.newEncoder().encode(java.nio.CharBuffer.wrap(LATINS[n & 63].toCharArray()), out, true);
			StandardCharsets.US_ASCII.newEncoder().encode(java.nio.CharBuffer.wrap(LATIN.toCharArray()), out, true);
			StandardCharsets.UTF_8.newEncoder().encode(java.nio.CharBuffer.wrap(UTF16S[n & 63].toCharArray()), out, true);
			out.flip();
			sink += StandardCharsets.UTF_8.decode(out).length();
		}
	}

	static final class Chars extends Work { // compress and inflate
		char[] to = new char[512], plain = LATIN.toCharArray(), letters = UTF16.toCharArray();

		void go(int n) {
			LATIN.getChars(n & 7, 200, to, n & 3);
			UTF16.getChars(n & 7, 100, to, n & 3);
			sink += LATINS[n & 63].toCharArray().length + new String(plain, n & 7, n & 127).length() + new String(letters, n & 7, n & 63).length() + new String(letters, 7, n & 3).length();
			sink += new StringBuilder(LATINS[n & 63]).append('ж').append(LATIN).length() + UTF16S[n & 63].replace('ж', 'a').length() + LATINS[n & 63].toUpperCase().length();
		}
	}

	static final class Concatenate extends Work {
		void go(int n) {
			String text = "a" + n + LATINS[n & 63] + 'c' + (long) n * n + UTF16S[n & 63] + (n & 1) + true;
			sink += text.length() + Integer.toString(n - 500).length() + Long.toString(-n * 99999999L).length() + String.valueOf(n * 0.25).length();
		}
	}

	static final class Builder extends Work {
		void go(int n) {
			StringBuilder text = new StringBuilder();
			for (int i = 0; i < (n & 31); i++)
				text.append(LATINS[i]).append(i).append((char) (i + 60));
			sink += text.append(1.5f).append((Object) null).reverse().length() + text.deleteCharAt(0).insert(0, "xyz").length();
		}
	}

	static final class SplitAndTrim extends Work {
		void go(int n) {
			sink += LATIN.split("9").length + LATINS[n & 63].trim().length() + "  ab c ".trim().length() + LATINS[n & 63].replace("cd", "xyz").length() + String.join(",", LATINS[n & 63], "b", "c").length()
				+ LATINS[n & 63].intern().length();
		}
	}

	/* --- arrays -------------------------------------------------------------------------------------------------------------------- */

	static final byte[] BYTES = LATIN.getBytes(StandardCharsets.ISO_8859_1);
	static final int[] INTS = new Random(1).ints(300).toArray();
	static final long[] LONGS = new Random(2).longs(300).toArray();
	static final double[] DOUBLES = new Random(3).doubles(300).toArray();

	static final class EqualArrays extends Work {
		byte[] bytes = BYTES.clone();
		char[] chars = LATIN.toCharArray(), others = LATIN.toCharArray();
		int[] ints = INTS.clone();
		long[] longs = LONGS.clone();

		void go(int n) {
			bytes[n % bytes.length] ^= 1;
			sink += (Arrays.equals(bytes, BYTES) ? 1 : 0) + (Arrays.equals(chars, others) ? 2 : 0) + (Arrays.equals(ints, INTS) ? 4 : 0) + (Arrays.equals(longs, LONGS) ? 8 : 0);
			bytes[n % bytes.length] ^= 1;
		}
	}

	static final class HashArrays extends Work {
		char[] chars = LATIN.toCharArray();
		short[] shorts = new short[77];

		void go(int n) {
			sink += Arrays.hashCode(BYTES) + Arrays.hashCode(chars) + Arrays.hashCode(shorts) + Arrays.hashCode(INTS) + Arrays.hashCode(LONGS);
		}
	}

	static final class Fill extends Work {
		byte[] bytes = new byte[333];
		short[] shorts = new short[111];
		int[] ints = new int[99];
		long[] longs = new long[77];
		Object[] objects = new Object[50];

		void go(int n) {
			Arrays.fill(bytes, n & 63, 70 + (n & 127), (byte) n);
			Arrays.fill(shorts, n & 31, 32 + (n & 63), (short) n);
			Arrays.fill(ints, n & 31, 32 + (n & 63), n);
			Arrays.fill(longs, n & 31, 32 + (n & 31), n);
			Arrays.fill(objects, null);
			sink += bytes[100];
		}
	}

	static final class CopyOf extends Work {
		void go(int n) {
			sink += Arrays.copyOf(BYTES, n & 255).length + Arrays.copyOfRange(INTS, n & 63, 64 + (n & 127)).length + Arrays.copyOf(LATINS, n & 127).length + LONGS.clone()[0]
				+ Arrays.copyOf((Object[]) LATINS, 20, String[].class).length + Arrays.copyOf(new Object[] { "a", "b" }, n & 15, String[].class).length;
			sinkObject = UTF16S.clone();
		}
	}

	static final class Sort extends Work {
		int[] ints = new int[700];
		double[] doubles = new double[600];
		long[] longs = new long[120];
		float[] floats = new float[300];

		void go(int n) {
			for (int i = 0; i < ints.length; i++)
				ints[i] = i * 7919 * (n | 1) % 5003;
			for (int i = 0; i < doubles.length; i++)
				doubles[i] = i * 7919 * (n | 1) % 5003 * 0.5;
			for (int i = 0; i < longs.length; i++)
				longs[i] = i * 7919L * n % 50;
			for (int i = 0; i < floats.length; i++)
				floats[i] = i * 31 * (n | 1) % 501;
			Arrays.sort(ints, 0, 30 + n % 600);
			Arrays.sort(doubles);
			Arrays.sort(longs);
			Arrays.sort(floats);
		}
	}

	static final class SortObjects extends Work {
		Integer[] numbers = new Integer[40];

		void go(int n) {
			for (int i = 0; i < numbers.length; i++)
				numbers[i] = i * 7919 * (n | 1) % 5003;
			Arrays.sort(numbers);
		}
	}

	/* --- copies -------------------------------------------------------------------------------------------------------------------- */

	static final class CopyBytes extends Work {
		byte[] a = new byte[700], b = new byte[700];
		short[] s = new short[300];
		char[] c = new char[300];

		void go(int n) {
			System.arraycopy(a, n & 7, b, n >> 3 & 7, n & 511);
			System.arraycopy(a, n & 15, a, n >> 2 & 15, n & 255);
			System.arraycopy(s, n & 7, s, n >> 3 & 7, n & 127);
			System.arraycopy(c, n & 7, s.length > 0 ? c : null, 8 - (n & 7), n & 63);
			System.arraycopy(a, 0, b, 0, 48);
		}
	}

	static final class CopyWords extends Work {
		int[] a = new int[300], b = new int[300];
		long[] c = new long[300];
		double[] d = new double[300], e = new double[300];

		void go(int n) {
			System.arraycopy(a, n & 7, b, n >> 3 & 7, n & 127);
			System.arraycopy(a, n & 15, a, n >> 2 & 15, n & 127);
			System.arraycopy(c, n & 7, c, n >> 3 & 7, n & 127);
			System.arraycopy(d, n & 7, e, 8 - (n & 7), n & 63);
		}
	}

	static final class CopyObjects extends Work {
		Object[] a = LATINS.clone(), b = new Object[70];
		String[] c = LATINS.clone(), d = new String[70];

		void go(int n) {
			System.arraycopy(a, n & 7, b, n >> 3 & 7, n & 31);
			System.arraycopy(c, n & 7, c, n >> 3 & 7, n & 31);
			System.arraycopy(c, 0, b, 0, n & 31); // no check is needed
			System.arraycopy(b, 0, d, n & 3, n & 31); // checks each
		}
	}

	static final class CopyChecked extends Work { // the last of them does not fit
		Object[] a = new Object[60];
		CharSequence[] b = new CharSequence[70];
		Comparable<?>[] c = new Comparable<?>[70];

		CopyChecked() {
			Arrays.fill(a, "x");
			a[40] = new Object();
		}

		void go(int n) {
			try {
				System.arraycopy(a, n & 7, b, n >> 3 & 7, n & 63 & 31 + (n & 32) / 2);
				System.arraycopy(a, n & 7, c, n >> 3 & 7, 20 + (n & 31));
			} catch (ArrayStoreException | IndexOutOfBoundsException e) {
				sink++;
			}
		}
	}

	static final class CopyGeneric extends Work { // of types that are not known
		Object[] all = { new byte[99], new int[99], new Object[99], new String[99], new long[99], new char[99], new short[99] };

		void go(int n) {
			Object array = all[n % 7];
			System.arraycopy(array, n & 7, array, n >> 3 & 7, n & 63);
			System.arraycopy(all[3], n & 7, all[2], n >> 3 & 7, n & 63);
			try {
				System.arraycopy(all[n % 7], 0, all[(n + (n & 16) / 16) % 7], 0, 30);
			} catch (ArrayStoreException e) {
				sink++;
			}
		}
	}

	static final class Point implements Cloneable {
		long a, b, c, d;
		Object e;

		Object h_clone() throws CloneNotSupportedException {
			return clone();
		}
	}

	static final class Clones extends Work {
		Point point = new Point();

		void go(int n) throws CloneNotSupportedException {
			sinkObject = point.h_clone();
			sinkObject = INTS.clone();
			sinkObject = LATINS.clone();
			sinkObject = new int[n & 3][n & 7].clone();
		}
	}

	static final class DirectBuffers extends Work {
		ByteBuffer direct = ByteBuffer.allocateDirect(1024), heap = ByteBuffer.allocate(1024);
		byte[] bytes = new byte[500];

		void go(int n) {
			direct.clear();
			direct.put(bytes, n & 7, 8 + (n & 255)).putInt(n).putLong(n).putDouble(0.5);
			direct.flip();
			direct.get(bytes, 0, n & 7);
			heap.clear();
			heap.put(direct);
			sink += heap.getInt(3) + heap.getLong(9);
		}
	}

	/* --- numbers ------------------------------------------------------------------------------------------------------------------- */

	static final double[] HARD = new double[64];

	static {
		for (int i = 0; i < 64; i++)
			HARD[i] = i < 30 ? (i - 15) * 0.37 : i < 50 ? (i - 40) * 3.7e9 : i == 50 ? Double.NaN : i == 51 ? Double.POSITIVE_INFINITY : i == 52 ? Double.NEGATIVE_INFINITY : i == 53 ? Double.MIN_VALUE
				: i == 54 ? -0.0 : i == 55 ? 1e300 : i == 56 ? -1e300 : i == 57 ? 1e-310 : i * 1e15;
	}

	static final class Trigonometry extends Work {
		void go(int n) {
			double x = HARD[n & 63];
			sinkDouble = Math.sin(x) + Math.cos(x) + Math.tan(x) + Math.sin(n * 1.7) + Math.cos(n * 1e6) + Math.tan(n * 0.3);
		}
	}

	static final class Exponential extends Work {
		void go(int n) {
			double x = HARD[n & 63];
			sinkDouble = Math.exp(x) + Math.log(x) + Math.log10(x) + Math.pow(x, 1.3) + Math.pow(n, 2) + Math.pow(HARD[n & 31], HARD[n >> 3 & 31]) + Math.sqrt(x) + Math.pow(n + 1, 0.5);
		}
	}

	static final class Hyperbolic extends Work {
		void go(int n) {
			double x = HARD[n & 63];
			sinkDouble = Math.tanh(x) + Math.sinh(x) + Math.cosh(x) + Math.cbrt(x) + Math.atan2(x, n) + Math.asin(x) + Math.hypot(x, n) + Math.expm1(x) + Math.log1p(x);
		}
	}

	static final class Rounding extends Work {
		void go(int n) {
			double x = HARD[n & 63];
			float y = (float) x;
			sinkDouble = Math.rint(x) + Math.ceil(x) + Math.floor(x) + Math.abs(x) + Math.signum(x) + Math.copySign(x, n - 4) + Math.min(x, n) + Math.max(x, n) + Math.signum(y)
				+ Math.copySign(y, 3f) + Math.min(y, n) + Math.max(y, n) + Math.abs(y);
			sink += Math.round(x) + Math.round(y) + Double.doubleToLongBits(x) + Float.floatToIntBits(y) + Double.doubleToRawLongBits(x) + Float.floatToRawIntBits(y)
				+ (Double.isInfinite(x) ? 1 : 0) + (Float.isNaN(y) ? 1 : 0) + (Double.isFinite(x) ? 1 : 0);
		}
	}

	static final class Conversions extends Work {
		void go(int n) {
			double x = HARD[n & 63];
			float y = (float) x;
			sink += (int) x + (long) x + (int) y + (long) y + (int) (x * 1e30) + (long) (y * 1e30f) + (short) x + (char) y + (x < y ? 1 : 0) + (x == y ? 1 : 0) + (x > y ? 1 : 0);
		}
	}

	static final class ConversionLoops extends Work {
		int[] ints = new int[64];
		long[] longs = new long[64];
		float[] floats = new float[64];

		void go(int n) {
			for (int i = 0; i < 64; i++)
				ints[i] = (int) HARD[i];
			for (int i = 0; i < 64; i++)
				longs[i] = (long) HARD[i];
			for (int i = 0; i < 64; i++)
				floats[i] = (float) HARD[i];
			for (int i = 0; i < 64; i++)
				ints[i] += (int) floats[i];
			for (int i = 0; i < 64; i++)
				longs[i] += (long) floats[i] + Math.round(floats[i]) + Math.round(HARD[i]);
		}
	}

	static final class Remainder extends Work {
		void go(int n) {
			sinkDouble = HARD[n & 63] % (n + 1.37) + (float) HARD[n & 63] % (n + 1.37f) + HARD[n + 7 & 63] % HARD[n & 31];
			sink += Math.floorMod(n, 7) + n % 13 + (long) n * n % (n | 1) + Integer.remainderUnsigned(-n, 77) + Long.divideUnsigned(-n, n | 1) + Integer.MIN_VALUE / ((n & 3) == 0 ? -1 : 5);
		}
	}

	static final class Bits extends Work {
		void go(int n) {
			long m = n * 0x9e3779b97f4a7c15L;
			sink += Integer.bitCount(n) + Long.bitCount(m) + Integer.numberOfLeadingZeros(n) + Long.numberOfTrailingZeros(m) + Integer.reverse(n) + Long.reverse(m) + Integer.reverseBytes(n)
				+ Long.reverseBytes(m) + Short.reverseBytes((short) n) + Character.reverseBytes((char) n) + Integer.rotateLeft(n, n) + Long.rotateRight(m, n) + Integer.compareUnsigned(n, 5)
				+ Integer.highestOneBit(n) + Long.numberOfLeadingZeros(m) + Integer.numberOfTrailingZeros(n);
		}
	}

	static final class Exact extends Work {
		void go(int n) {
			int x = 0;
			try {
				x = Math.addExact(n, 5) + Math.subtractExact(n, 7) + Math.incrementExact(n) + Math.negateExact(n);
				x += (int) Math.multiplyExact((long) n, 3L) + Math.multiplyExact(n, (n & 7) == 0 ? 1 << 30 : 2) + (int) Math.addExact((long) n, n) + Math.toIntExact((long) n);
			} catch (ArithmeticException e) {
				x++;
			}
			sink += x;
		}
	}

	static final class VectorLoops extends Work {
		int[] a = new int[200], b = INTS.clone();
		double[] x = new double[200];
		byte[] bytes = new byte[200];

		void go(int n) {
			int sum = 0, low = 0;
			for (int i = 0; i < a.length; i++)
				a[i] = b[i] * 3 + n;
			for (int i = 0; i < a.length; i++) {
				sum += a[i];
				low = Math.min(low, b[i]);
			}
			for (int i = 0; i < x.length; i++)
				x[i] = Math.sqrt(x[i] + DOUBLES[i]) + Math.abs(DOUBLES[i]);
			for (int i = 0; i < bytes.length; i++)
				bytes[i] = (byte) (bytes[i] + BYTES[i] ^ n);
			for (int i = 0; i < a.length; i++)
				a[i] = Integer.bitCount(a[i]) + Integer.rotateLeft(b[i], 5) + (a[i] > 0 ? 1 : 0);
			sink += sum + low;
		}
	}

	/* --- checksums, digests, ciphers ----------------------------------------------------------------------------------------------- */

	static final byte[] DATA = new byte[2048];

	static {
		new Random(4).nextBytes(DATA);
	}

	abstract static class Checks extends Work {
		Checksum sum;
		ByteBuffer direct = ByteBuffer.allocateDirect(600);

		void h_check(int n) {
			sum.update(DATA, n & 31, 1 + (n * 37 & 1023));
			sum.update(n);
			sum.update(DATA, 0, n & 31);
			sink += sum.getValue();
		}
	}

	static final class Crc32 extends Checks {
		void go(int n) {
			CRC32 crc = new CRC32();
			sum = crc;
			h_check(n);
			direct.clear();
			direct.limit(1 + (n & 511));
			crc.update(direct);
			sink += crc.getValue();
		}
	}

	static final class Crc32c extends Checks {
		Crc32c() throws Exception {
			sum = (Checksum) Class.forName("java.util.zip.CRC32C").getDeclaredConstructor().newInstance();
		}

		void go(int n) {
			h_check(n);
		}
	}

	static final class Adler extends Checks {
		Adler() {
			sum = new Adler32();
		}

		void go(int n) {
			h_check(n);
		}
	}

	abstract static class Digest extends Work {
		final MessageDigest digest;

		Digest(String name) throws Exception {
			digest = MessageDigest.getInstance(name);
		}

		void go(int n) {
			digest.update(DATA, n & 7, 1 + (n * 37 & 511));
			sink += digest.digest()[0];
		}
	}

	static final class Md5 extends Digest {
		Md5() throws Exception {
			super("MD5");
		}
	}

	static final class Sha1 extends Digest {
		Sha1() throws Exception {
			super("SHA-1");
		}
	}

	static final class Sha256 extends Digest {
		Sha256() throws Exception {
			super("SHA-256");
		}
	}

	static final class Sha512 extends Digest {
		Sha512() throws Exception {
			super("SHA-512");
		}
	}

	static final class Sha3 extends Digest {
		Sha3() throws Exception {
			super("SHA3-256");
		}
	}

	abstract static class Ciphers extends Work {
		final byte[] out = new byte[4096], back = new byte[4096], iv = new byte[16];
		Cipher encrypt, decrypt;

		void h_begin(String name, String key, int keyBytes) throws Exception {
			encrypt = Cipher.getInstance(name);
			decrypt = Cipher.getInstance(name);
			h_key(keyBytes, key, null);
		}

		void h_key(int keyBytes, String key, AlgorithmParameterSpec spec) throws Exception {
			SecretKeySpec made = new SecretKeySpec(DATA, 0, keyBytes, key);
			encrypt.init(Cipher.ENCRYPT_MODE, made, spec);
			decrypt.init(Cipher.DECRYPT_MODE, made, spec);
		}

		void h_both(int size) throws Exception {
			int length = encrypt.doFinal(DATA, 0, size, out);
			decrypt.doFinal(out, 0, length, back);
			sink += back[0];
		}

		AlgorithmParameterSpec h_iv(int n, int size, boolean isGcm) {
			byte[] iv = new byte[size];
			iv[0] = (byte) n;
			iv[1] = (byte) (n >> 8);
			iv[2] = (byte) (n >> 16);
			return isGcm ? new GCMParameterSpec(128, iv) : new IvParameterSpec(iv);
		}
	}

	static final class AesEcb extends Ciphers {
		AesEcb() throws Exception {
			h_begin("AES/ECB/NoPadding", "AES", 16);
		}

		void go(int n) throws Exception {
			if ((n & 63) == 0)
				h_key(16 + (n >> 6) % 3 * 8, "AES", null);
			h_both((n & 63) * 16);
		}
	}

	static final class AesCbc extends Ciphers {
		AesCbc() throws Exception {
			encrypt = Cipher.getInstance("AES/CBC/PKCS5Padding");
			decrypt = Cipher.getInstance("AES/CBC/PKCS5Padding");
		}

		void go(int n) throws Exception {
			if ((n & 7) == 0)
				h_key(16 + (n >> 3) % 3 * 8, "AES", h_iv(n, 16, false));
			h_both(n & 1023);
		}
	}

	static final class AesCtr extends Ciphers {
		AesCtr() throws Exception {
			encrypt = Cipher.getInstance("AES/CTR/NoPadding");
			decrypt = Cipher.getInstance("AES/CTR/NoPadding");
		}

		void go(int n) throws Exception {
			if ((n & 7) == 0)
				h_key(16 + (n >> 3) % 3 * 8, "AES", h_iv(n, 16, false));
			h_both(1 + (n & 1023));
		}
	}

	static final class AesGcm extends Ciphers {
		AesGcm() throws Exception {
			encrypt = Cipher.getInstance("AES/GCM/NoPadding");
			decrypt = Cipher.getInstance("AES/GCM/NoPadding");
		}

		void go(int n) throws Exception {
			h_key(16 + n % 3 * 8, "AES", h_iv(n + 1, 12, true));
			h_both(1 + (n & 2047));
		}
	}

	static final class ChaCha extends Ciphers {
		ChaCha() throws Exception {
			encrypt = Cipher.getInstance("ChaCha20-Poly1305");
			decrypt = Cipher.getInstance("ChaCha20-Poly1305");
		}

		void go(int n) throws Exception {
			h_key(32, "ChaCha20", h_iv(n + 1, 12, false));
			h_both(1 + (n * 37 & 2047));
		}
	}

	static final class Base64Both extends Work {
		byte[] encoded = Base64.getEncoder().encode(DATA), url = Base64.getUrlEncoder().encode(DATA), mime = Base64.getMimeEncoder().encode(DATA);

		void go(int n) {
			sink += Base64.getEncoder().encode(Arrays.copyOf(DATA, n & 1023)).length + Base64.getDecoder().decode(Arrays.copyOf(encoded, (n & 511) * 4)).length + Base64.getUrlDecoder().decode(url).length;
			if ((n & 7) == 0)
				sink += Base64.getMimeDecoder().decode(mime).length;
		}
	}

	static final BigInteger BIG = new BigInteger(1024, new Random(1)).setBit(0).setBit(1023), OTHER = new BigInteger(1000, new Random(2)), SMALL = new BigInteger(70, new Random(3));

	static final class BigMultiply extends Work {
		BigInteger[] numbers = new BigInteger[16];

		BigMultiply() {
			for (int i = 0; i < 16; i++)
				numbers[i] = new BigInteger(40 + 53 * i, new Random(i));
		}

		void go(int n) {
			BigInteger a = numbers[n & 15], b = numbers[n >> 2 & 15];
			sink += a.multiply(b).intValue() + a.multiply(a).intValue() + a.pow(2).intValue() + a.add(b).subtract(BIG).intValue();
		}
	}

	static final class BigModPow extends Work {
		void go(int n) {
			sink += OTHER.modPow(BigInteger.valueOf(n | 1), BIG).intValue();
		}
	}

	static final class BigShift extends Work {
		void go(int n) {
			sink += BIG.shiftLeft(n & 63).shiftRight(n & 31).intValue() + BIG.divide(SMALL).intValue() + BIG.mod(OTHER).intValue() + OTHER.gcd(SMALL).bitLength();
		}
	}

	static final class BigText extends Work {
		void go(int n) {
			sink += BIG.toString().length() + new BigInteger(OTHER.toString()).bitLength() + new java.math.BigDecimal("123456789.25").multiply(java.math.BigDecimal.valueOf(n)).scale();
		}
	}

	static final class Curve extends Work {
		Signature sign = Signature.getInstance("SHA256withECDSA"), verify = Signature.getInstance("SHA256withECDSA");
		byte[] made;

		Curve() throws Exception {
			KeyPairGenerator generator = KeyPairGenerator.getInstance("EC");
			generator.initialize(256);
			KeyPair pair = generator.generateKeyPair();
			sign.initSign(pair.getPrivate());
			verify.initVerify(pair.getPublic());
		}

		void go(int n) throws Exception {
			sign.update(DATA, 0, n & 255);
			made = sign.sign();
			verify.update(DATA, 0, n & 255);
			sink += verify.verify(made) ? 1 : 0;
		}
	}

	static final class Rsa extends Work {
		Signature sign = Signature.getInstance("SHA256withRSA");

		Rsa() throws Exception {
			KeyPairGenerator generator = KeyPairGenerator.getInstance("RSA");
			generator.initialize(1024);
			sign.initSign(generator.generateKeyPair().getPrivate());
		}

		void go(int n) throws Exception {
			sign.update(DATA, 0, n & 255);
			sink += sign.sign()[0];
		}
	}

	/* Of the newest versions; by name. */
	abstract static class Lattice extends Work {
		KeyPairGenerator generator;
		Signature sign;

		void go(int n) throws Exception {
			KeyPair pair = generator.generateKeyPair();
			if (sign != null) {
				sign.initSign(pair.getPrivate());
				sign.update(DATA, 0, n & 255);
				sink += sign.sign()[0];
			}
		}
	}

	static final class MlKem extends Lattice {
		MlKem() throws Exception {
			generator = KeyPairGenerator.getInstance("ML-KEM");
		}
	}

	static final class MlDsa extends Lattice {
		MlDsa() throws Exception {
			generator = KeyPairGenerator.getInstance("ML-DSA");
			sign = Signature.getInstance("ML-DSA");
		}
	}

	static final class Zip extends Work { // by native code that keeps arrays in place
		Deflater deflater = new Deflater();
		Inflater inflater = new Inflater();
		byte[] packed = new byte[1000], back = new byte[1000];

		void go(int n) throws Exception {
			deflater.reset();
			deflater.setInput(BYTES, 0, n & 255);
			deflater.finish();
			int size = deflater.deflate(packed);
			inflater.reset();
			inflater.setInput(packed, 0, size);
			sink += inflater.inflate(back);
		}
	}

	/* --- types --------------------------------------------------------------------------------------------------------------------- */

	interface I0 {} interface I1 {} interface I2 {} interface I3 {} interface I4 {} interface I5 {} interface I6 {} interface I7 {}
	interface I8 {} interface I9 {} interface I10 {} interface I11 {} interface I12 {} interface I13 {} interface I14 {} interface I15 {}
	interface I16 {} interface I17 {} interface I18 {} interface I19 {} interface I20 {} interface I21 {} interface I22 {} interface I23 {}
	interface I24 {} interface I25 {} interface I26 {} interface I27 {} interface I28 {} interface I29 {} interface I30 {} interface I31 {}
	interface I32 {} interface I33 {} interface I34 {} interface I35 {} interface I36 {} interface I37 {} interface I38 {} interface I39 {}

	static class Many implements I0, I1, I2, I3, I4, I5, I6, I7, I8, I9, I10, I11, I12, I13, I14, I15, I16, I17, I18, I19, I20, I21, I22, I23, I24, I25, I26, I27, I28, I29, I30, I31, I32, I33, I34, I35, I36, I37, I38, I39 {}

	static class Other implements I0, I1, I2, I3, I4, I5, I6, I7, I8, I9, I10, I11, I12, I13, I14, I15, I16, I17, I18, I19, I20, I21, I22, I23, I24, I25, I26, I27, I28, I29, I30, I31, I32, I33, I34, I35, I36, I37, I38, I39 {}

	static class Third extends Other implements Comparable<Third> {
		public int compareTo(Third other) {
			return 0;
		}
	}

	static final Object[] OBJECTS = { new Many(), new Other(), new Third(), new Many(), "text", 7 };

	static int h_is1(Object object) {
		return object instanceof I39 ? 1 : 0;
	}

	static int h_is2(Object object, int a) {
		int r = 0;
		if (object instanceof I38)
			r += a;
		if (object instanceof I36)
			r++;
		return r;
	}

	static int h_is3(Object object, long a, long b) {
		I37 cast = (I37) object;
		return cast == null ? 0 : (int) (a + b);
	}

	static long h_is4(Object object, long a, long b, long c, long d) {
		long r = object instanceof I35 ? 1 : 0;
		r += a * b + c * d;
		r += object instanceof I34 ? 2 : 0;
		return r + a + b + c + d;
	}

	static final class InstanceOf extends Work {
		void go(int n) {
			Object object = OBJECTS[n % 6];
			sink += h_is1(object) + h_is2(object, 3) + h_is3(OBJECTS[n & 3], 4, 5) + h_is4(object, 3, 4, 5, 6) + (object instanceof Comparable ? 1 : 0);
		}
	}

	static final class InstanceOfClass extends Work {
		Class<?>[] classes = { I3.class, I33.class, String.class, Comparable.class, Object[].class, int.class, Third.class };

		void go(int n) {
			Class<?> one = classes[n % 7];
			sink += (one.isInstance(OBJECTS[n % 6]) ? 1 : 0) + (I22.class.isInstance(OBJECTS[n % 6]) ? 1 : 0) + (one.isAssignableFrom(classes[n >> 3 & 3]) ? 1 : 0) + one.getModifiers()
				+ (one.isInterface() ? 1 : 0) + (one.isArray() ? 1 : 0) + (one.isPrimitive() ? 1 : 0) + (one.getSuperclass() == Object.class ? 1 : 0);
			try {
				sinkObject = one.cast(OBJECTS[n % 6]);
			} catch (ClassCastException e) {
				sink++;
			}
		}
	}

	static final class Stores extends Work { // into arrays of other types
		Object[][] arrays = { new Object[8], new I30[8], new I31[8], new Comparable[8], new Many[8] };

		void go(int n) {
			try {
				arrays[n % 5][n & 7] = OBJECTS[n % 6];
				arrays[1][n & 7] = OBJECTS[n & 3];
			} catch (ArrayStoreException e) {
				sink++;
			}
		}
	}

	static final class FailingCasts extends Work {
		void go(int n) {
			try {
				sinkObject = (I5) OBJECTS[n % 6];
				sinkObject = (Third) OBJECTS[n % 6];
			} catch (ClassCastException e) {
				sink++;
			}
		}
	}

	interface Shape {
		int h_area(int n);
	}

	static final class Square implements Shape {
		public int h_area(int n) {
			return n * n;
		}
	}

	static final class Circle implements Shape {
		public int h_area(int n) {
			return n * 3;
		}
	}

	static class Wide implements Shape {
		public int h_area(int n) {
			return n * 5;
		}
	}

	static final class Wider extends Wide {
		public int h_area(int n) {
			return n * 7 + super.h_area(n);
		}
	}

	static final class InterfaceCalls extends Work {
		Shape[] shapes = { new Square(), new Circle(), new Wide(), new Wider() };
		Wide[] wides = { new Wide(), new Wider(), new Wide() {
			public int h_area(int n) {
				return n;
			}
		} };

		void go(int n) {
			sink += shapes[n & 3].h_area(n) + wides[n % 3].h_area(n) + OBJECTS[n % 6].hashCode() + OBJECTS[n % 6].toString().length() % 2 + (OBJECTS[n % 6].equals("text") ? 1 : 0);
		}
	}

	static final class Reflection extends Work {
		Method method = JavaCode.class.getDeclaredMethod("h_is1", Object.class);

		Reflection() throws Exception {}

		void go(int n) throws Exception {
			sink += (Integer) method.invoke(null, OBJECTS[n % 6]) + Third.class.getDeclaredConstructor().newInstance().compareTo(null);
		}
	}

	/* --- memory -------------------------------------------------------------------------------------------------------------------- */

	static final class Atomics extends Work {
		AtomicInteger a = new AtomicInteger();
		AtomicLong b = new AtomicLong();
		AtomicReference<Object> c = new AtomicReference<>();
		AtomicLongArray d = new AtomicLongArray(8);
		volatile long e;

		void go(int n) {
			sink += a.incrementAndGet() + b.getAndAdd(n) + a.getAndSet(n) + d.getAndIncrement(n & 7) + e++;
			c.compareAndSet(null, OBJECTS[n % 6]);
			sinkObject = c.getAndSet(null);
			a.compareAndSet(n, n + 1);
			b.lazySet(n);
		}
	}

	static final class Node {
		Node a, b;
		long x;
	}

	/* Fields are written and read while the collector runs all the time. */
	abstract static class Collected extends Work {
		Collected() {
			Thread collector = new Thread(() -> {
				try {
					while (!isStopped) {
						System.gc();
						Thread.sleep(1);
					}
				} catch (InterruptedException e) {
					return;
				}
			});
			collector.setDaemon(true);
			collector.start();
		}
	}

	static final class Barriers extends Collected {
		Node[] nodes = new Node[1 << 14];
		int at;

		Barriers() {
			for (int i = 0; i < nodes.length; i++)
				nodes[i] = new Node();
		}

		static long h_put(Node n, Node m, long a, long b, long c, long d) {
			long e = a * 3 + b, f = c ^ d, g = a - b;
			n.a = m;
			return a + b + c + d + e * f + g;
		}

		static long h_put2(Node n, Node m, Node o) {
			n.a = m;
			n.b = o;
			return n.x;
		}

		static long h_get(Node n, long a, long b, long c, double d, double e) {
			long f = a * b, g = b ^ c;
			double h = d * e;
			Node m = n.a;
			return m == null ? f : m.x + a + b + c + f + g + (long) (d + e + h);
		}

		static Node h_walk(Node n, int steps) {
			for (int i = 0; i < steps && n.a != null; i++)
				n = n.a;
			return n;
		}

		void go(int n) {
			int mask = nodes.length - 1, i = at++ * 31 & mask;
			sink += h_put(nodes[i], nodes[i * 7 + 1 & mask], n, 2, 3, 4) + h_put2(nodes[i * 3 & mask], nodes[i * 5 + 1 & mask], null) + h_get(nodes[i * 11 & mask], n, 6, 7, 1.5, 2.5);
			nodes[i] = (n & 3) == 0 ? new Node() : h_walk(nodes[i], n & 7);
		}
	}

	static final class BarrierKinds extends Collected {
		AtomicReference<Object>[] cells = h_cells();
		WeakReference<?>[] weak = new WeakReference<?>[256];
		Object[] from = new Object[300], to = new Object[300];

		@SuppressWarnings("unchecked")
		static AtomicReference<Object>[] h_cells() {
			AtomicReference<Object>[] cells = new AtomicReference[1024];
			for (int i = 0; i < cells.length; i++)
				cells[i] = new AtomicReference<>(new Node());
			return cells;
		}

		void go(int n) {
			AtomicReference<Object> cell = cells[n * 7 & 1023];
			Object old = cell.get();
			cell.compareAndSet(old, new Node());
			sinkObject = cell.getAndSet(old);
			weak[n & 255] = new WeakReference<>(old);
			sinkObject = weak[n * 5 & 255] == null ? null : weak[n * 5 & 255].get();
			from[n % 300] = old;
			System.arraycopy(from, n & 63, to, n >> 3 & 63, 100 + (n & 63));
			sinkObject = (n & 7) == 0 ? to.clone() : cells[n & 1023];
		}
	}

	static final class Allocations extends Work {
		Object[] kept = new Object[256];

		static final class Watched {
			protected void finalize() {
				sink++;
			}
		}

		void go(int n) {
			kept[n & 255] = new int[n & 1023];
			kept[n * 3 & 255] = new Object[n & 63];
			kept[n * 5 & 255] = new Node();
			kept[n * 7 & 255] = new long[n & 3][n & 7];
			kept[n * 9 & 255] = new Point();
			kept[n * 11 & 255] = java.lang.reflect.Array.newInstance(Object.class, n & 31);
			if ((n & 63) == 0) {
				kept[n & 255] = new byte[200000];
				kept[1] = new Watched();
			}
			try {
				kept[2] = new int[(n & 31) - 1];
			} catch (NegativeArraySizeException e) {
				sink++;
			}
		}
	}

	static final class Identity extends Work {
		void go(int n) {
			Object object = new Object();
			sink += object.hashCode() + System.identityHashCode(OBJECTS[n % 6]) + object.hashCode() + Thread.currentThread().getId() + System.nanoTime() + System.currentTimeMillis()
				+ (Thread.currentThread().isInterrupted() ? 1 : 0) + (Thread.holdsLock(object) ? 1 : 0) + OBJECTS[n % 6].getClass().hashCode();
		}
	}

	/* --- control flow -------------------------------------------------------------------------------------------------------------- */

	static final class Monitors extends Work {
		final Object lock = new Object();
		int count;

		synchronized int h_locked(int n) {
			count += n;
			return n;
		}

		static synchronized int h_static(int n) {
			return n + 1;
		}

		void go(int n) {
			synchronized (lock) {
				synchronized (this) {
					sink += h_locked(n);
				}
				count++;
			}
			sink += h_static(n);
			synchronized (new Object()) {
				count++;
			}
		}
	}

	static final class Contended extends Work {
		final Object lock = new Object();
		int count;

		Contended() {
			Thread rival = new Thread(() -> {
				while (!isStopped) {
					for (int i = 0; i < 100; i++)
						h_locked();
					Thread.yield();
				}
			});
			rival.setDaemon(true);
			rival.start();
		}

		void h_locked() {
			synchronized (lock) {
				count++;
				for (int i = 0; i < 50; i++)
					count = count * 3 + 1;
			}
		}

		void go(int n) throws InterruptedException {
			h_locked();
			synchronized (lock) {
				lock.notifyAll();
				if ((n & 1023) == 0)
					lock.wait(1);
			}
		}
	}

	static final IllegalStateException FALLING = new IllegalStateException();

	static int h_fall(int depth, int n) {
		if (depth == 0) {
			if ((n & 3) == 0)
				throw new IllegalArgumentException("n");
			throw FALLING;
		}
		try {
			return h_fall2(depth - 1, n, 3L) + 1;
		} finally {
			sink++;
		}
	}

	static synchronized int h_fall2(int depth, int n, long a) {
		return depth == 0 ? h_fall(0, n) : h_fall(depth - 1, n) + (int) a;
	}

	static final class Thrown extends Work {
		void go(int n) {
			try {
				sink += h_fall(n & 7, n);
			} catch (IllegalStateException | IllegalArgumentException e) {
				sink++;
			}
		}
	}

	static final class Implicit extends Work { // exceptions of the VM
		Node none;
		int[] few = new int[4];

		void go(int n) {
			try {
				switch (n & 3) {
				case 0: sink += (n & 4) == 0 ? none.x : 1; break;
				case 1: sink += few[n & 7]; break;
				case 2: sink += n / (n & 4); break;
				default: sinkObject = OBJECTS[n * 3 % 6]; sink += ((String) OBJECTS[n % 6]).length();
				}
			} catch (RuntimeException e) {
				sink++;
			}
		}
	}

	static final class Traps extends Work { // code that was compiled for other values than those that come
		int kind;

		static int h_trap(Object object, int n) {
			if (n > 0xff000)
				return object instanceof I3 ? 5 : 6;
			return object instanceof Many ? 1 : object instanceof Third ? 2 : object == null ? 3 : 4;
		}

		void go(int n) throws Exception {
			sink += h_trap(n % 10007 == 10006 ? "x" : n % 5003 == 5002 && n <= 0xff000 ? null : OBJECTS[n % 50021 == 50020 ? 2 : 0], n);
			if (n % 3001 == 3000) // a new class
				sinkObject = java.lang.reflect.Proxy.newProxyInstance(JavaCode.class.getClassLoader(), new Class<?>[] { Shape.class, I1.class }, (a, b, c) -> null);
		}
	}

	static final class BigFrame extends Work {
		static long h_big(long a, long b, double c, double d, long e, long f, double g, double h, int i, int j, long k, long l, float m, float n, double o, double p, double q, double r) {
			long s = a * b + e, t = e * f + a, u = k * l + b, v = a ^ l, w = b + k * 3, x = e * 5 + l, y = f * 7 + a, z = i * j;
			double aa = c * d, bb = g * h, cc = m * n, dd = o * p, ee = q * r, ff = c + r, gg = d * q, hh = g - p;
			long ii = h_small(a, c, i) + h_small(s + t, aa + bb, j);
			return ii + s + t + u + v + w + x + y + z + (long) (aa + bb + cc + dd + ee + ff + gg + hh) + a + b + e + f + k + l + i + j + (long) (c + d + g + h + m + n + o + p + q + r);
		}

		static long h_small(long a, double b, int c) {
			return a + (long) b + c;
		}

		void go(int n) {
			sink += h_big(n, 2, 3.5, 4.5, 5, 6, 7.5, 8.5, 9, 10, 11, 12, 13.5f, 14.5f, 15.5, 16.5, 17.5, 18.5);
		}
	}

	static final class Loops extends Work { // polls, and code that is entered in a loop
		void go(int n) {
			long sum = 0;
			for (long i = 0; i < (n & 1023); i++)
				sum = sum * 31 + i;
			for (int i = n & 1; i < 300; i += (n & 3) + 1)
				sum ^= i;
			while (sum != 0 && (sum & 1) == 0)
				sum >>= 1;
			sink += sum;
		}
	}

	static final class LongLoop extends Work {
		void go(int n) {
			long sum = 0;
			for (long i = 0; i < 200000; i++)
				sum = sum * 31 + i ^ sink;
			sink += sum;
		}
	}

	static final class Recursion extends Work {
		static int h_fib(int n) {
			return n < 2 ? n : h_fib(n - 1) + h_fib(n - 2);
		}

		static long h_deep(int depth, long a) {
			return depth == 0 ? a : h_deep(depth - 1, a + depth) + 1;
		}

		void go(int n) {
			sink += h_fib(n & 7) + h_deep(n & 63, n);
		}
	}

	static final class Switches extends Work {
		String[] words = { "one", "two", "three", "four", "Aa", "BB" };

		void go(int n) {
			int r = 0;
			switch (n % 17) {
			case 0: r = 3; break;
			case 1: r = 7; break;
			case 2: r = n; break;
			case 3: r = n * 3; break;
			case 4: r = -n; break;
			case 5: r = 11; break;
			case 7: r = 1; break;
			case 11: r = 2; break;
			default: r = 5;
			}
			switch (words[n % 6]) {
			case "one": r++; break;
			case "three": r += 2; break;
			case "Aa": r += 3; break;
			case "BB": r += 4; break;
			default: r += 5;
			}
			sink += r;
		}
	}

	static final class Collections extends Work {
		Map<Object, Object> map = new HashMap<>();
		List<Integer> list = new ArrayList<>();

		void go(int n) {
			map.put(n & 255, "x");
			map.put(LATINS[n & 63], n);
			sinkObject = map.get(UTF16S[n & 63]);
			map.remove(n * 3 & 255);
			list.add(n);
			if (list.size() > 50)
				list.clear();
			for (int number : list)
				sink += number;
		}
	}

	static final class Streams extends Work {
		void go(int n) {
			sink += Arrays.stream(INTS).limit(20 + (n & 31)).filter(x -> x > 0).map(x -> x * 3).sum() + Arrays.asList(LATINS).stream().map(String::length).mapToInt(Integer::intValue).sum();
		}
	}
}
