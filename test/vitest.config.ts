import { defineConfig } from "vitest/config";

const reportFile = process.env.VITEST_JSON;

/**
 * Unit tests need no server; integration and end-to-end tests get the local stack from their global setup. The time-outs are safety
 * nets, longer than a few waits of a test that fail one after the other: what such a wait has seen last says more than a time-out.
 */
export default defineConfig({
  test: {
    root: new URL("..", import.meta.url).pathname,
    reporters: reportFile === undefined ? ["default"] : ["default", ["json", { outputFile: reportFile }]],
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: ["test/unit/**/*.test.ts", "test/*.test.ts"],
          exclude: ["test/unit/simulation/system.test.ts"],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        extends: true,
        // Needs no server either, but more than a minute of processor time.
        test: {
          name: "simulation",
          include: ["test/unit/simulation/system.test.ts"],
          testTimeout: 900_000,
          hookTimeout: 60_000,
          maxWorkers: 1,
        },
      },
      {
        extends: true,
        test: {
          name: "integration",
          include: ["test/integration/**/*.test.ts"],
          globalSetup: "test/support/global-setup.ts",
          testTimeout: 240_000,
          hookTimeout: 300_000,
          maxWorkers: 2,
        },
      },
      {
        extends: true,
        test: {
          name: "e2e",
          include: ["test/e2e/**/*.test.ts"],
          globalSetup: "test/support/global-setup.ts",
          testTimeout: 360_000,
          hookTimeout: 360_000,
          maxWorkers: 1,
        },
      },
    ],
  },
});
