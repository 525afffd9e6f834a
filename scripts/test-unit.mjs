// `npm run test:unit`: the tests of parts by themselves, which need no Redis, nothing built, and seconds.
// Arguments go to jest.
import { jestCommand, jestEnvironment } from './lib/jest.mjs';
import { installDependencies } from './lib/prepare.mjs';
import { run } from './lib/run.mjs';

const FOLDERS = ['test/unit/', 'test/config/'];
/** They need a Redis: the subscribers' tests, and those of the helpers of other tests. */
const OTHERS = ['-subscriber\\.test', 'test/unit/support/'];

installDependencies();
const ignored = OTHERS.flatMap((pattern) => ['--testPathIgnorePatterns', pattern]);
const patterns = FOLDERS.flatMap((folder) => ['--testPathPatterns', folder]);
run('node', jestCommand(...patterns, ...ignored, ...process.argv.slice(2)), {
  env: jestEnvironment({}),
});
