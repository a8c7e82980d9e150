// SPDX-License-Identifier: Apache-2.0
/* Work as real programs do it, for ever, in two threads, through the library and through calls of all kinds: JavaWork. Prints "ready" once all is compiled. Java 8 and newer. */
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

public class JavaWork {
	static final Pattern WORDS = Pattern.compile("([a-z]+)(\\d+|[,;.])*\\s");
	static volatile Object kept;
	static volatile int sink;

	interface Shape {
		double area();
	}

	static class Square implements Shape {
		final double side;

		Square(double side) {
			this.side = side;
		}

		public double area() {
			return side * side;
		}
	}

	static class Circle implements Shape {
		final double radius;

		Circle(double radius) {
			this.radius = radius;
		}

		public double area() {
			double sum = 0;
			for (int i = 1; i < 20; i++)
				sum += radius / i;
			return sum * radius;
		}
	}

	static class Ring extends Circle {
		Ring(double radius) {
			super(radius);
		}

		public double area() {
			return super.area() - 1;
		}
	}

	static String text(int seed) {
		StringBuilder text = new StringBuilder();
		for (int i = 0; i < 200; i++)
			text.append((char) ('a' + (i * seed + i / 3) % 26)).append(i % 7 == 0 ? " " : "").append(i % 11 == 0 ? i : "");
		return text.append(' ').toString();
	}

	static int matches(int seed) {
		Matcher matcher = WORDS.matcher(text(seed));
		int nr = 0;
		while (matcher.find())
			nr += matcher.group(1).length();
		return nr;
	}

	static int counts(int seed) {
		Map<String, Integer> counts = new HashMap<>();
		for (String word : text(seed).split(" "))
			counts.merge(word, 1, Integer::sum);
		for (int i = 0; i < 300; i++)
			counts.put("key" + i % 50, i);
		return counts.size();
	}

	static int sorts(int seed) {
		Integer[] numbers = new Integer[400];
		for (int i = 0; i < numbers.length; i++)
			numbers[i] = (i * 7919 + seed) % 1009;
		Arrays.sort(numbers, Comparator.reverseOrder());
		return numbers[7];
	}

	static int streams(int seed) {
		List<Integer> numbers = new ArrayList<>();
		for (int i = 0; i < 300; i++)
			numbers.add(i ^ seed);
		return numbers.stream().filter(n -> n % 3 != 0).map(n -> n * 2).collect(Collectors.toList()).size();
	}

	static int fibonacci(int n) {
		return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
	}

	static int shapes(int seed) {
		Shape[] shapes = { new Square(seed), new Circle(seed), new Ring(seed) };
		double sum = 0;
		for (int i = 0; i < 600; i++)
			sum += shapes[i % 3].area();
		return (int) sum;
	}

	static int deep(int n) {
		if (n == 0)
			throw new IllegalStateException();
		try {
			return deep(n - 1) + 1;
		} finally {
			sink++;
		}
	}

	static int exceptions(int seed) {
		try {
			return deep(20 + seed % 10);
		} catch (IllegalStateException e) {
			return e.getStackTrace().length;
		}
	}

	static int big(int seed) {
		BigInteger product = BigInteger.valueOf(seed + 3);
		for (int i = 0; i < 40; i++)
			product = product.multiply(product.shiftRight(1).add(BigInteger.TEN)).mod(BigInteger.ONE.shiftLeft(400).subtract(BigInteger.ONE));
		return product.bitLength();
	}

	static int copies(int seed) {
		byte[] from = new byte[20000], to = new byte[20000];
		Arrays.fill(from, (byte) seed);
		for (int i = 0; i < 8; i++)
			System.arraycopy(from, i, to, 8 - i, 19900);
		kept = to;
		return to[100];
	}

	static void work(CountDownLatch ready) {
		ThreadMXBean times = ManagementFactory.getThreadMXBean();
		for (int seed = 1;; seed = seed % 1000 + 1) {
			sink += matches(seed) + counts(seed) + sorts(seed) + streams(seed) + fibonacci(13) + shapes(seed) + exceptions(seed) + big(seed) + copies(seed);
			if (ready.getCount() > 0 && times.getCurrentThreadCpuTime() > 10000000000L)
				ready.countDown();
		}
	}

	public static void main(String[] args) throws InterruptedException {
		CountDownLatch ready = new CountDownLatch(2);
		for (int i = 0; i < 2; i++) {
			Thread thread = new Thread(() -> work(ready), "work" + i);
			thread.setDaemon(true);
			thread.start();
		}
		ready.await();
		System.out.println("ready");
		Thread.sleep(Long.MAX_VALUE);
	}
}
