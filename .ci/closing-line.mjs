/**
 * Prints how many tests passed, failed and were skipped, from the file that vitest's JSON reporter wrote. The status is
 * 0 only if some ran and none failed.
 */
import { readFileSync } from "node:fs";

const read = (file) => {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    console.log(`vitest left no result: ${error.message}`);
    return { success: false, testResults: [], numPassedTests: 0, numFailedTests: 0 };
  }
};

const {
  success,
  testResults,
  numPassedTests,
  numFailedTests,
  numPendingTests = 0,
  numTodoTests = 0,
} = read(process.argv[2]);
// A file that can't be loaded has no tests that could fail; it counts as one.
const broken = testResults.filter(
  ({ status, assertionResults }) => status === "failed" && !assertionResults.some((test) => test.status === "failed"),
);
for (const { name, message } of broken) console.log(`${name} failed as a whole: ${message}`);

const failed = numFailedTests + broken.length;
const skipped = numPendingTests + numTodoTests;
if (numPassedTests + failed === 0) console.log("no test ran");
console.log(`${numPassedTests} passed, ${failed} failed${skipped === 0 ? "" : `, ${skipped} skipped`}`);
process.exitCode = success && failed === 0 && numPassedTests > 0 ? 0 : 1;
