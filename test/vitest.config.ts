import { defineConfig } from "vitest/config";

const reportFile = process.env.VITEST_JSON;

/** Unit tests need no server; integration and end-to-end tests get the local stack from their global setup. */
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
          testTimeout: 20_000,
        },
      },
      {
        extends: true,
        test: {
          name: "integration",
          include: ["test/integration/**/*.test.ts"],
          globalSetup: "test/support/global-setup.ts",
          testTimeout: 60_000,
          hookTimeout: 120_000,
          maxWorkers: 2,
        },
      },
      {
        extends: true,
        test: {
          name: "e2e",
          include: ["test/e2e/**/*.test.ts"],
          globalSetup: "test/support/global-setup.ts",
          testTimeout: 120_000,
          hookTimeout: 180_000,
          maxWorkers: 1,
        },
      },
    ],
  },
});
