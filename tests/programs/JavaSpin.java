// SPDX-License-Identifier: Apache-2.0
/* Spins for ever in stacks that it knows, in a thread for each of its arguments: JavaSpin LIBRARY SCENARIO... For each thread, once it spins, it prints "T TID SCENARIO", then a line
 * "Class.method File line" for each frame, leaf first, then "E". Above the last frame that it prints, method `spin`, a thread calls c1, which calls c2, and so on to c9, and returns:
 * at any moment a stack has the first few of these, in order. Java 8 and newer. */
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.concurrent.locks.ReentrantLock;

public class JavaSpin {
	interface Step {
		int go(int n);
	}

	static class First implements Step {
		public int go(int n) {
			return c5(n + 1) - 1;
		}
	}

	static class Second implements Step {
		public int go(int n) {
			return c5(n + 2) - 2;
		}
	}

	static class Third implements Step {
		public int go(int n) {
			return c5(n + 3) - 3;
		}
	}

	static final Step[] STEPS = { new First(), new Second(), new Third() };
	static final ReentrantLock OUTPUT = new ReentrantLock();
	static final Object[] KEPT = new Object[4096];
	static volatile int sink;

	static native void callBack(Runnable work);

	static native void sort(Runnable work);

	/* Through native code whose caller cannot be found; null: that code spins. */
	static native void breakChain(Runnable work);

	static void tell() {
		StringBuilder text = new StringBuilder();
		StackTraceElement[] stack = Thread.currentThread().getStackTrace();
		try {
			text.append("T ").append(Files.readSymbolicLink(Paths.get("/proc/thread-self")).getFileName()).append(' ').append(Thread.currentThread().getName()).append('\n');
		} catch (java.io.IOException e) {
			throw new RuntimeException(e);
		}
		for (int i = 2; i < stack.length; i++)
			text.append(stack[i].getClassName()).append('.').append(stack[i].getMethodName()).append(' ').append(stack[i].getFileName()).append(' ').append(stack[i].getLineNumber()).append('\n');
		text.append("E\n");
		OUTPUT.lock();
		System.out.print(text);
		System.out.flush();
		OUTPUT.unlock();
	}

	static int c1(int n) {
		return c2(n * 3) ^ 1;
	}

	static synchronized int locked(int n) {
		return n + 1;
	}

	static int c2(int n) {
		long sum = n;
		for (int i = 0; i < (n & 7); i++)
			sum += i * 5;
		return c3((int) sum, n, 3L, 4.0, n + 1, n + 2, n + 3, n + 4, n + 5) + 2;
	}

	static int c3(int a, int b, long c, double d, int e, int f, int g, int h, int i) {
		return c4(a + b + (int) c + (int) d + e + f + g + h + i) + a;
	}

	static int c4(int n) {
		return STEPS[(n & 0x7fffffff) % 3].go(n) + 1;
	}

	static int c5(int n) {
		try {
			return c6(n) + 1;
		} catch (IllegalStateException e) {
			return n;
		}
	}

	static int c6(int n) {
		return c7(new int[] { n, n + 1, n + 2, n & 15 }) + 1;
	}

	static int c7(int[] numbers) {
		int sum = 0;
		for (int number : numbers)
			sum += number;
		return c8(sum, "abc".charAt(sum & 1)) + sum;
	}

	static int c8(int n, char c) {
		if (c == 'x')
			throw new IllegalStateException();
		return c9(n) + c;
	}

	static int c9(int n) {
		int product = 1;
		for (int i = 1; i < (n & 31); i++)
			product = product * i + n;
		sink = product;
		return product;
	}

	static void spin() {
		tell();
		for (int n = 0;; n++) {
			sink = c1(n);
			KEPT[n >> 6 & 4095] = (n & 63) == 0 ? new int[n >> 6 & 63] : KEPT[n * 7 >> 6 & 4095];
		}
	}

	/* Most of its time is in the VM's own code, which copies. */
	static void copies() {
		byte[] from = new byte[30000], to = new byte[30000];
		tell();
		for (int n = 0;; n++) {
			System.arraycopy(from, n & 7, to, n & 3, 29900 + (n & 15));
			sink = c1(n);
		}
	}

	static final Object[] BOTH = { new Object[70], new int[70] };

	/* Most of its time is in stubs that copy words or references: up or down, and some jump to others or call the VM. */
	static void moves() {
		tell();
		for (int n = 0;; n++) {
			System.arraycopy(BOTH[0], n & 1, BOTH[0], 1 - (n & 1), 20 + (n & 31));
			System.arraycopy(BOTH[n & 1], n >> 1 & 1, BOTH[n & 1], 1 - (n >> 1 & 1), 20 + (n & 31));
		}
	}

	static final IllegalStateException FALLING = new IllegalStateException();

	/* An exception goes through many frames of these three. */
	static int fall1(int depth) {
		if (depth == 0)
			throw FALLING;
		try {
			return fall2(depth - 1) + 1;
		} finally {
			sink++;
		}
	}

	static int fall2(int depth) {
		return depth == 0 ? 1 : fall3(depth - 1) + 1;
	}

	static int fall3(int depth) {
		try {
			return fall1(depth - 1) + 1;
		} catch (ArithmeticException e) {
			return 3;
		}
	}

	static void thrown() {
		tell();
		for (int n = 0;; n++)
			try { sink = fall1(18); } catch (IllegalStateException e) { sink++; }
	}

	static void recurse(int depth, double unused) {
		if (depth == 0)
			spin();
		else
			recurse(depth - 1, unused + 1);
		sink++;
	}

	static void mixed(int depth) {
		if (depth == 0)
			spin();
		else if (depth % 2 == 0)
			callBack(() -> mixed(depth - 1));
		else
			sort(() -> mixed(depth - 1));
		sink++;
	}

	static void descend(int depth, Runnable work) {
		if (depth == 0)
			work.run();
		else
			descend(depth - 1, work);
		sink++;
	}

	/* Twice as many changes between Java and C as the depth. */
	static void sides(int depth) {
		if (depth == 0)
			spin();
		else
			descend(15, () -> callBack(() -> sides(depth - 1)));
		sink++;
	}

	static void compare() {
		Integer[] numbers = { 3, 1, 2 };
		Arrays.sort(numbers, (a, b) -> {
			spin();
			return a - b;
		});
	}

	static void handle() throws Throwable {
		MethodHandle handle = MethodHandles.lookup().findStatic(JavaSpin.class, "spin", MethodType.methodType(void.class));
		handle.invokeExact();
	}

	static synchronized void monitor() {
		synchronized (OUTPUT) {
			new Object() {
				void method() {
					spin();
				}
			}.method();
		}
	}

	/* Compiled code that is on the stack and then thrown away, as a class is loaded that it did not expect. */
	static class Animal {
		int noise(int n, Runnable work) {
			if (n == 20000)
				work.run();
			return n + 1;
		}
	}

	static int shout(Animal animal, int n, Runnable work) {
		return animal.noise(n, work) + 1;
	}

	static void deoptimized() {
		Animal animal = new Animal();
		for (int i = 0; i <= 20000; i++)
			sink += shout(animal, i, () -> {
				Animal dog = new Animal() {
					int noise(int n, Runnable work) {
						return n + 3;
					}
				};
				sink += shout(dog, 1, null);
				spin();
			});
	}

	static void throughC(int depth) {
		if (depth == 0)
			spin();
		else
			descend(30, () -> sort(() -> throughC(depth - 1)));
		sink++;
	}

	static void broken(int depth) {
		if (depth == 0)
			spin();
		else
			descend(3, () -> breakChain(() -> broken(depth - 1)));
		sink++;
	}

	static void stuck(int depth) {
		if (depth == 0) {
			tell();
			breakChain(null);
		} else {
			descend(3, () -> breakChain(() -> stuck(depth - 1)));
		}
		sink++;
	}

	/* In a virtual thread (21 and newer); `work` may wait, which takes the thread off its carrier. By reflection, as this file is compiled for Java 8. */
	static void virtual(Runnable work) throws Throwable {
		String name = Thread.currentThread().getName();
		Runnable named = () -> {
			Thread.currentThread().setName(name);
			work.run();
		};
		Thread thread = (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, named);
		thread.join();
	}

	/* When it goes on, its first frames are still on the heap. */
	static void resume() {
		try {
			Thread.sleep(20);
		} catch (InterruptedException e) {
			throw new RuntimeException(e);
		}
		spin();
		sink++;
	}

	static void work(String name) throws Throwable {
		switch (name) {
		case "spin": spin(); break;
		case "recursion": recurse(200, 0); break;
		case "deep": recurse(1000, 0); break;
		case "mixed": mixed(20); break;
		case "sides": sides(20); break;
		case "through_c": throughC(14); break;
		case "virtual": virtual(() -> descend(40, () -> spin())); break;
		case "resumed": virtual(() -> descend(40, () -> resume())); break;
		case "copies": copies(); break;
		case "moves": moves(); break;
		case "thrown": thrown(); break;
		case "broken": broken(10); break;
		case "stuck": stuck(10); break;
		case "compare": compare(); break;
		case "handle": handle(); break;
		case "monitor": monitor(); break;
		case "deoptimized": deoptimized(); break;
		default: throw new IllegalArgumentException(name);
		}
	}

	public static void main(String[] args) throws Throwable {
		if (!args[0].equals("-"))
			System.load(args[0]);
		for (int i = 1; i < args.length; i++) {
			String name = args[i];
			Thread thread = new Thread(() -> {
				try {
					work(name);
				} catch (Throwable e) {
					e.printStackTrace();
				}
			}, name);
			thread.setDaemon(true);
			thread.start();
		}
		Thread.sleep(Long.MAX_VALUE);
	}
}
