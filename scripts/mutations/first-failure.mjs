/** A reporter of Jest that tells of the first test that fails at once. Jest itself waits for the other tests of the file. */
export default class FirstFailure {
  onTestCaseResult(_test, { status, fullName }) {
    if (status === 'failed') console.error(`  ● ${fullName}`);
  }
}
