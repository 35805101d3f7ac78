/**
 * The JDK internals that Cassandra reaches into, as its own list for Java 17 servers has them. Without them it dies at start
 * with an IllegalAccessException. All are given to unnamed modules, which is where its jars are.
 */
const exported = [
  "java.base/jdk.internal.misc",
  "java.base/java.lang.ref",
  "java.management.rmi/com.sun.jmx.remote.internal.rmi",
  "java.rmi/sun.rmi.registry",
  "java.rmi/sun.rmi.server",
  "java.sql/java.sql",
  "jdk.unsupported/sun.misc",
  "jdk.compiler/com.sun.tools.javac.file",
  "jdk.attach/sun.tools.attach",
];

const opened = [
  "java.base/java.io",
  "java.base/java.lang",
  "java.base/java.lang.module",
  "java.base/java.lang.reflect",
  "java.base/java.util",
  "java.base/jdk.internal.loader",
  "java.base/jdk.internal.math",
  "java.base/jdk.internal.module",
  "java.base/jdk.internal.ref",
  "java.base/jdk.internal.reflect",
  "java.base/jdk.internal.util.jar",
  "java.base/sun.nio.ch",
  "jdk.compiler/com.sun.tools.javac",
  "jdk.management/com.sun.management.internal",
];

export const openedJdkInternals: readonly string[] = [
  "-Djdk.attach.allowAttachSelf=true",
  "-Dio.netty.tryReflectionSetAccessible=true",
  ...exported.map((name) => `--add-exports=${name}=ALL-UNNAMED`),
  ...opened.map((name) => `--add-opens=${name}=ALL-UNNAMED`),
];
