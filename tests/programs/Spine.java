// SPDX-License-Identifier: Apache-2.0
// Spine SECONDS: a thread, spine, whose callers are known, all of which the JVM compiles (run it with -Xcomp, and its methods not inlined): run, loops, switches, catches, doubles, recurs (8 times), calls, works,
// each shaped otherwise, and below these the library's sorting, hashing, formatting.
import java.util.ArrayList;
import java.util.HashMap;

public class Spine extends Thread {
	interface Step {
		long calls(int n, long s);
	}
	static final class First implements Step {
		public long calls(int n, long s) {
			return works(n, s + 1) + 1;
		}
	}
	static final class Second implements Step {
		public long calls(int n, long s) {
			return s < 0 ? works(n, s * 3) : works(n + 1, s) ^ s;
		}
	}
	static final class Third implements Step {
		public long calls(int n, long s) {
			long sum = 0;
			for (int i = 0; i < 2; i++)
				sum += works(n, s ^ i);
			return sum;
		}
	}

	static final Step[] steps = { new First(), new Second(), new Third(), new First() };
	static final IllegalStateException thrown = new IllegalStateException();
	static volatile long sink;
	static long end;
	static int[] numbers = new int[512];

	long left;

	Spine(String name, long passes) {
		super(name);
		left = passes;
	}

	public void run() {
		while (left-- > 0 && System.nanoTime() < end)
			sink ^= loops(3);
	}

	static long loops(int n) {
		long s = 0;
		for (int i = 0; i < n; i++) {
			for (int j = 0; j < numbers.length; j++)
				s += numbers[j] * i;
			s ^= switches(i, s);
		}
		return s;
	}

	static long switches(int i, long s) {
		switch (i) {
		case 0: return catches(1, s) + 3;
		case 1: return catches(2, s) * 5;
		case 2: return catches(3, s + i);
		case 3: return s;
		case 4: return s + 9;
		default: return -catches(i, s);
		}
	}

	static long catches(int n, long s) {
		try {
			if (n == 2)
				throw thrown;
			return (long)doubles(n, s, 1.5);
		} catch (IllegalStateException e) {
			return (long)doubles(n, s, 2.5) + 1;
		} finally {
			sink++;
		}
	}

	static double doubles(int n, double s, double f) {
		double a = f, b = s * f, c = n;
		for (int i = 0; i < n; i++) {
			a += b * i;
			c += a / (i + 1);
		}
		return a + b * c + recurs(7, n, (long)s);
	}

	static long recurs(int depth, int n, long s) {
		if (depth == 0)
			return steps[(int)(s & 3)].calls(n, s);
		return recurs(depth - 1, n, s + depth) + depth;
	}

	static long works(int n, long s) {
		return spins(200, s) ^ sorts(n, s) ^ hashes(n, s) ^ formats(n, s);
	}

	static long spins(int n, long s) {
		for (int i = 0; i < n; i++) {
			s = s * 31 + numbers[(int)(s & 511)];
			if (s == 77)
				numbers[i & 511]++;
		}
		return s;
	}

	static long sorts(int n, long s) {
		ArrayList<Long> all = new ArrayList<>();
		for (int i = 0; i < 30 + n; i++)
			all.add(s * i % 97);
		all.sort((a, b) -> Long.compare(b, a));
		return all.get(3);
	}

	static long hashes(int n, long s) {
		HashMap<Long, Integer> map = new HashMap<>();
		for (int i = 0; i < 30 + n; i++)
			map.merge(s * i % 31, i, Integer::sum);
		return map.size();
	}

	static long formats(int n, long s) {
		return ("x" + s + "," + n).concat(Long.toHexString(s)).hashCode();
	}

	public static void main(String[] args) throws Exception {
		end = System.nanoTime() + (long)(Double.parseDouble(args[0]) * 1e9);
		Spine first = new Spine("compiles", 500), spine = new Spine("spine", Long.MAX_VALUE);
		first.start();
		first.join();
		spine.start();
		System.out.println("ready");
		System.out.flush();
		spine.join();
	}
}
