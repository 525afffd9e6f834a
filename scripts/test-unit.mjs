// `npm run test:unit`: the unit tests, which take about a minute, and need no Redis and no build.
// Arguments go to jest.
import { jestCommand, jestEnvironment } from './lib/jest.mjs';
import { installDependencies } from './lib/prepare.mjs';
import { run } from './lib/run.mjs';

const FOLDERS = ['test/unit/'];

installDependencies();
const chosen = ['--roots', ...FOLDERS];
run('node', jestCommand(...process.argv.slice(2), ...chosen), { env: jestEnvironment({}) });
