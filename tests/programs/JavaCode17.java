// SPDX-License-Identifier: Apache-2.0
/* More scenarios for JavaCode, of classes and compilers that are newer than Java 8's. Java 17 and newer. */
public class JavaCode17 {
}
