// SPDX-License-Identifier: Apache-2.0
/* Walks through rooms for ever, each of which leads to two others only: from room K to K + 1 and to 3 * K + 1 (of 8), in calls of many kinds, most of which compilers inline. All
 * rooms are in the code of each door, so that the code of a room is next to that of others where the program never goes from it. Java 8 and newer. */
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.Arrays;
import java.util.HashMap;
import java.util.function.IntUnaryOperator;

public class JavaMaze {
	static final int ROOMS = 8;
	static final MethodHandle HANDLE = handle("inner4");
	static long seed = 5;
	static int sink;

	static MethodHandle handle(String name) {
		try {
			return MethodHandles.lookup().findStatic(JavaMaze.class, name, MethodType.methodType(int.class, int.class));
		} catch (ReflectiveOperationException e) {
			throw new IllegalStateException(e);
		}
	}

	static int random(int below) {
		seed = seed * 6364136223846793005L + 1442695040888963407L;
		return (int) ((seed >>> 33) % below);
	}

	/* Where it stays: no call, no safepoint of its own but what the loop needs. */
	static int stay(int n) {
		int sum = n, turns = random(1500);
		for (int i = 0; i < turns; i++)
			sum = sum * 31 + i;
		return sum;
	}

	static int leave(int room, int left) {
		if (left <= 0)
			return stay(left);
		return enter(random(2) == 0 ? (room + 1) % ROOMS : (3 * room + 1) % ROOMS, left - 1);
	}

	static int enter(int room, int left) {
		switch (room) {
		case 0: return room0(left);
		case 1: return room1(left);
		case 2: return room2(left);
		case 3: return room3(left);
		case 4: return room4(left);
		case 5: return room5(left);
		case 6: return room6(left);
		default: return room7(left);
		}
	}

	static int room0(int left) {
		return leave(0, left);
	}

	static int inner1(int left) {
		return leave(1, left);
	}

	static int room1(int left) {
		IntUnaryOperator called = JavaMaze::inner1;
		return called.applyAsInt(left);
	}

	static int room2(int left) {
		int[] numbers = new int[] { left, 3, 1 };
		int found = leave(2, left);
		return Arrays.copyOf(numbers, 2 + (found & 1))[1];
	}

	static int room3(int left) {
		return new HashMap<Integer, Integer>().computeIfAbsent(left, key -> leave(3, key));
	}

	static int inner4(int left) {
		return leave(4, left);
	}

	static int room4(int left) {
		try {
			return (int) HANDLE.invokeExact(left);
		} catch (Throwable e) {
			throw new IllegalStateException(e);
		}
	}

	static int room5(int left) {
		int sum = 0;
		for (int i = 0; i < 100; i++) {
			sum += i * left;
			if (i == 70)
				sum += leave(5, left);
		}
		return sum;
	}

	static int room6(int left) {
		Integer[] numbers = { 3, 1, 2 };
		int[] found = { 0 };
		Arrays.sort(numbers, (a, b) -> {
			found[0] += leave(6, left - 2);
			return a - b;
		});
		return found[0];
	}

	static synchronized int room7(int left) {
		return ("a" + leave(7, left)).length();
	}

	static void begin() {
		sink += enter(random(ROOMS), 3 + random(12));
	}

	public static void main(String[] args) {
		for (;;)
			begin();
	}
}
