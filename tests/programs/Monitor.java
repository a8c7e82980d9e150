// SPDX-License-Identifier: Apache-2.0
// Monitor SECONDS: a thread that holds a monitor for 30 ms at a time and one that enters it meanwhile. At the end of each: NAME ASKED TOOK, in seconds.
public class Monitor {
	static final Object monitor = new Object();
	static volatile boolean isHeld;
	static long end;

	static void holds() {
		long asked = 0, took = 0;
		while (System.nanoTime() < end) {
			long began = System.nanoTime();
			synchronized (monitor) {
				isHeld = true;
				asked += sleepInside();
			}
			took += System.nanoTime() - began;
			isHeld = false;
			pause(5);
		}
		System.out.println("holds " + asked / 1e9 + " " + took / 1e9);
	}

	static long sleepInside() {
		pause(30);
		return 30_000_000L;
	}

	static void pause(int ms) {
		try {
			Thread.sleep(ms);
		} catch (InterruptedException e) {
			throw new RuntimeException(e);
		}
	}

	static long enters() {
		long began = System.nanoTime();
		synchronized (monitor) {
			return System.nanoTime() - began;
		}
	}

	static void wants() {
		long took = 0;
		while (System.nanoTime() < end) {
			while (!isHeld && System.nanoTime() < end)
				Thread.onSpinWait();
			took += enters();
		}
		System.out.println("wants 0 " + took / 1e9);
	}

	public static void main(String[] args) throws Exception {
		end = System.nanoTime() + (long) (Double.parseDouble(args[0]) * 1e9);
		System.out.println("ready");
		System.out.flush();
		Thread holder = new Thread(Monitor::holds, "holds"), wanter = new Thread(Monitor::wants, "wants");
		holder.start();
		wanter.start();
		holder.join();
		wanter.join();
	}
}
