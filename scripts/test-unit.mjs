// `npm run test:unit`: the unit tests, which need no Redis and no build, and take half a minute on two
// cores. Arguments go to jest.
import { jestCommand, jestEnvironment } from './lib/jest.mjs';
import { installDependencies } from './lib/prepare.mjs';
import { run } from './lib/run.mjs';

installDependencies();
// By default jest leaves one core idle, but these tests never wait.
const chosen = ['--maxWorkers', '100%', ...process.argv.slice(2), '--roots', 'test/unit/'];
run('node', jestCommand(...chosen), { env: jestEnvironment({}) });
