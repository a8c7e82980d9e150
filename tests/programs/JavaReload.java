// SPDX-License-Identifier: Apache-2.0
import java.io.DataInputStream;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;

/** Loads two versions of one class in turn. They differ in a method's name alone, so the VM puts the second one's data where those of the
 * first one were, which is gone. Each version is run from a method that says which one it is: run_first calls Version.first. */
public class JavaReload {
	public static class Version implements Runnable {
		public void run() { first(); }

		static void first() {
			for (int i = 0; i < 10000; i++)
				sink += i;
		}

		static volatile int sink;
	}

	static class Loader extends ClassLoader {
		Loader() { super(null); }

		Runnable make(byte[] bytes) throws Exception {
			return (Runnable)defineClass(null, bytes, 0, bytes.length).getDeclaredConstructor().newInstance();
		}
	}

	static void runFirst(Runnable version, long endNs) {
		while (System.nanoTime() < endNs)
			version.run();
	}

	static void runOther(Runnable version, long endNs) {
		while (System.nanoTime() < endNs)
			version.run();
	}

	public static void main(String[] args) throws Exception {
		InputStream in = JavaReload.class.getResourceAsStream("JavaReload$Version.class");
		byte[] first = new byte[in.available()];
		new DataInputStream(in).readFully(first);
		byte[] other = new String(first, StandardCharsets.ISO_8859_1).replace("first", "other").getBytes(StandardCharsets.ISO_8859_1);

		for (;;) {
			runFirst(new Loader().make(first), System.nanoTime() + 40_000_000);
			System.gc();
			runOther(new Loader().make(other), System.nanoTime() + 40_000_000);
			System.gc();
		}
	}
}
