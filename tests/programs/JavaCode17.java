// SPDX-License-Identifier: Apache-2.0
/* More scenarios for JavaCode, of what came after Java 8. Java 17 and newer. */
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.invoke.VarHandle;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import sun.misc.Unsafe;

public class JavaCode17 {
	static final class Fused extends JavaCode.Work {
		void go(int n) {
			double x = JavaCode.HARD[n & 63];
			JavaCode.sinkDouble = Math.fma(x, n, 0.5) + Math.fma((float) x, 2f, (float) n) + Math.scalb(x, 3) + Math.ulp(x) + Math.nextUp(x) + StrictMath.sqrt(x);
			JavaCode.sink += Math.multiplyHigh(n * 0x9e3779b97f4a7c15L, n) + Math.absExact(n) + Math.floorDiv(-n, 7) + Math.multiplyFull(n, n);
		}
	}

	static final class Mismatch extends JavaCode.Work {
		byte[] bytes = JavaCode.BYTES.clone();
		int[] ints = JavaCode.INTS.clone();
		double[] doubles = JavaCode.DOUBLES.clone();

		void go(int n) {
			bytes[n % bytes.length] ^= 1;
			JavaCode.sink += Arrays.mismatch(bytes, JavaCode.BYTES) + Arrays.mismatch(ints, JavaCode.INTS) + Arrays.mismatch(doubles, JavaCode.DOUBLES) + Arrays.compare(bytes, JavaCode.BYTES)
				+ (Arrays.equals(bytes, n & 31, 100, JavaCode.BYTES, n & 31, 100) ? 1 : 0);
			bytes[n % bytes.length] ^= 1;
		}
	}

	static final class NewStrings extends JavaCode.Work {
		void go(int n) {
			String text = JavaCode.LATINS[n & 63];
			JavaCode.sink += text.repeat(n & 7).length() + text.strip().length() + (text.isBlank() ? 1 : 0) + text.lines().count() + text.indent(2).length() + HexFormat.of().formatHex(JavaCode.DATA, 0, n & 31).length()
				+ new StringBuilder(text).compareTo(new StringBuilder(JavaCode.LATINS[(n + 8) & 63])) + text.chars().sum() + "%s".formatted(n & 7).length();
		}
	}

	record Pair(int a, String b) {}

	static final class Records extends JavaCode.Work {
		Pair[] pairs = { new Pair(1, "x"), new Pair(2, "y"), new Pair(1, "x") };
		Map<Pair, Integer> map = Map.of(pairs[0], 1, pairs[1], 2);

		void go(int n) {
			JavaCode.sink += map.get(pairs[n % 3]) + pairs[n % 3].toString().length() + (pairs[n % 3].equals(pairs[(n + 1) % 3]) ? 1 : 0) + List.of(1, 2, n).hashCode();
		}
	}

	static final class Checked extends JavaCode.Work {
		void go(int n) {
			try {
				JavaCode.sink += Objects.checkIndex(n & 15, 15) + Objects.checkIndex((long) n & 31, 31L) + Objects.requireNonNull(JavaCode.OBJECTS[n % 6]).hashCode();
			} catch (IndexOutOfBoundsException e) {
				JavaCode.sink++;
			}
			Thread.onSpinWait();
		}
	}

	static final class Handles extends JavaCode.Work {
		static final VarHandle ELEMENTS = MethodHandles.arrayElementVarHandle(long[].class), OBJECTS = MethodHandles.arrayElementVarHandle(Object[].class),
			BYTES = MethodHandles.byteArrayViewVarHandle(long[].class, java.nio.ByteOrder.BIG_ENDIAN);
		static final MethodHandle ADD;
		MethodHandle changing = ADD;
		long[] longs = new long[16];
		Object[] objects = new Object[16];

		static {
			try {
				ADD = MethodHandles.lookup().findStatic(Handles.class, "h_add", MethodType.methodType(long.class, int.class, long.class));
			} catch (ReflectiveOperationException e) {
				throw new ExceptionInInitializerError(e);
			}
		}

		static long h_add(int a, long b) {
			return a + b;
		}

		void go(int n) throws Exception {
			ELEMENTS.setVolatile(longs, n & 15, (long) n);
			JavaCode.sink += (long) ELEMENTS.getAndAdd(longs, n & 15, 3L) + (long) ELEMENTS.getAcquire(longs, n & 7) + (long) BYTES.get(JavaCode.DATA, n & 63);
			OBJECTS.compareAndSet(objects, n & 15, null, "x");
			JavaCode.sinkObject = OBJECTS.getAndSet(objects, n & 15, n);
			try {
				JavaCode.sink += (long) ADD.invokeExact(n, 3L) + (long) changing.invokeExact(n, 5L) + (long) changing.invoke(n, n);
			} catch (Throwable e) {
				throw new RuntimeException(e);
			}
		}
	}

	/* By name, as it is newer. */
	static final class NewerNumbers extends JavaCode.Work {
		final MethodHandle toHalf, fromHalf, compress, expand;

		NewerNumbers() throws Exception {
			MethodHandles.Lookup lookup = MethodHandles.lookup();
			MethodType ints = MethodType.methodType(int.class, int.class, int.class);
			toHalf = lookup.findStatic(Float.class, "floatToFloat16", MethodType.methodType(short.class, float.class));
			fromHalf = lookup.findStatic(Float.class, "float16ToFloat", MethodType.methodType(float.class, short.class));
			compress = lookup.findStatic(Integer.class, "compress", ints);
			expand = lookup.findStatic(Integer.class, "expand", ints);
		}

		void go(int n) throws Exception {
			try {
				JavaCode.sink += (short) toHalf.invokeExact((float) JavaCode.HARD[n & 63]) + (int) compress.invokeExact(n, 0x5555) + (int) expand.invokeExact(n, 0x3333);
				JavaCode.sinkDouble = (float) fromHalf.invokeExact((short) n);
			} catch (Throwable e) {
				throw new RuntimeException(e);
			}
		}
	}

	static final class Raw extends JavaCode.Work { // memory without an object
		final Unsafe unsafe;
		final long memory;

		Raw() throws Exception {
			var field = Unsafe.class.getDeclaredField("theUnsafe");
			field.setAccessible(true);
			unsafe = (Unsafe) field.get(null);
			memory = unsafe.allocateMemory(4096);
		}

		void go(int n) {
			unsafe.setMemory(memory + (n & 7), 8 + (n & 511), (byte) n);
			unsafe.copyMemory(memory + (n & 15), memory + (n >> 3 & 15), n & 255);
			unsafe.copyMemory(JavaCode.DATA, Unsafe.ARRAY_BYTE_BASE_OFFSET, null, memory, n & 63);
			unsafe.putLong(memory, unsafe.getInt(memory + 5));
			JavaCode.sink += unsafe.getAndAddLong(null, memory, 3) + (unsafe.compareAndSwapInt(null, memory, n, 5) ? 1 : 0);
			unsafe.fullFence();
		}
	}
}
