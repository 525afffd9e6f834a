// `npm run test:unit`: the tests of parts by themselves, which need no Redis, nothing built, and seconds.
// Arguments go to jest.
import { jestCommand, jestEnvironment } from './lib/jest.mjs';
import { installDependencies } from './lib/prepare.mjs';
import { run } from './lib/run.mjs';

const FOLDERS = ['test/unit/'];

installDependencies();
const chosen = ['--roots', ...FOLDERS];
run('node', jestCommand(...process.argv.slice(2), ...chosen), { env: jestEnvironment({}) });
