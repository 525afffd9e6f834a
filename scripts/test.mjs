// `npm test`: sets up what a fresh clone lacks, then checks style, types and behaviour. Arguments go
// to jest, so `npm test -- queue` runs the tests whose path contains "queue".
import { jestCommand, jestEnvironment } from './lib/jest.mjs';
import { build, installDependencies } from './lib/prepare.mjs';
import { run } from './lib/run.mjs';

installDependencies();
run('npm', ['run', '--silent', 'lint']);
run('npm', ['run', '--silent', 'typecheck']);
build();

const { findRedis } = await import('./lib/find-redis.mjs');
const redis = await findRedis();
run('node', jestCommand(...process.argv.slice(2)), { env: jestEnvironment(redis) });
// The connection to testcontainers' reaper, where there is one, would keep this process.
process.exit(0);
