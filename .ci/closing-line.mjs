/**
 * Prints how many tests passed, failed and were skipped, from the files that vitest's JSON reporter wrote. The status is
 * 0 only if in each some ran and none failed.
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

const results = process.argv.slice(2).map(read);
const sum = (count) => results.reduce((total, result) => total + (count(result) ?? 0), 0);

// A file that can't be loaded has no tests that could fail; it counts as one.
const broken = results.flatMap(({ testResults }) =>
  testResults.filter(
    ({ status, assertionResults }) => status === "failed" && !assertionResults.some((test) => test.status === "failed"),
  ),
);
for (const { name, message } of broken) console.log(`${name} failed as a whole: ${message}`);

const passed = sum((result) => result.numPassedTests);
const failed = sum((result) => result.numFailedTests) + broken.length;
const skipped = sum((result) => result.numPendingTests) + sum((result) => result.numTodoTests);
if (passed + failed === 0) console.log("no test ran");
console.log(`${passed} passed, ${failed} failed${skipped === 0 ? "" : `, ${skipped} skipped`}`);
const isGood = ({ success, numPassedTests }) => success && numPassedTests > 0;
process.exitCode = results.length > 0 && results.every(isGood) && failed === 0 ? 0 : 1;
