// Envoy's protocol over gRPC: Sluice, its peers that serve it, and the limit of node:http2. Sluice also over HTTP, in the
// same process and with as many keys.
import { freePort } from '../../scripts/lib/free-port.mjs';
import { saturate } from '../lib/load.mjs';
import { peer, Server, SLUICE } from '../lib/processes.mjs';
import { nativePeersOf, startProgram, withCpu } from '../lib/programs.mjs';
import { progress } from '../lib/progress.mjs';
import { callRls } from '../lib/rls-load.mjs';
import { ratio, summary } from '../lib/statistics.mjs';

const WARM_UP_SECONDS = 3;
const PEERS = ['envoy-ratelimit', 'limitador'];
const LIMIT = 1_000_000_000;
const LOADS = [
  { name: 'one key', keys: 1 },
  { name: '5,000 keys', keys: 5000 },
];

export async function rls(options) {
  const results = [];
  for (const load of LOADS) results.push(await measureLoad(load, options));
  return results;
}

async function measureLoad({ name, keys }, options) {
  const { redisProgram, rounds, seconds } = options;
  const started = [];
  for (const program of programsOf(options)) {
    started.push(await startProgram(program, { redisProgram, limit: LIMIT }));
  }
  const lines = started.flatMap((program) => [
    { name: program.name, program, run: (load) => callRls(program.server.rlsPort, load) },
    ...(program.name === 'sluice' || program.name === 'embedded'
      ? [
          {
            name: `${program.name}, over HTTP`,
            program,
            run: (load) => saturate(program.server, { name: 'key', ...load }),
          },
        ]
      : []),
  ]);
  for (const line of lines) {
    progress(`rls, ${name}: ${line.name} warms up`);
    const { perSecond } = await line.run({ keys, seconds: WARM_UP_SECONDS });
    line.peak = perSecond;
    line.runs = [];
  }
  for (let round = 0; round < rounds; round += 1) {
    for (const line of lines) {
      progress(`rls, ${name}: round ${round + 1} of ${rounds}, ${line.name}`);
      line.runs.push(await measure(line, { keys, seconds }));
    }
  }
  await Promise.all(started.map((program) => program.stop()));
  return { name, programs: lines.map(summarize), ratios: ratiosOf(lines) };
}

async function measure({ program, run, peak, name }, load) {
  const { perSecond, cpuMicros, redisCpuMicros } = await withCpu(program, () => run(load));
  // Over HTTP, bench/scenarios/latency.mjs measures it.
  const { p99Micros } = name.endsWith('HTTP') ? {} : await run({ ...load, perSecond: peak / 2 });
  return { perSecond, cpuMicros, redisCpuMicros, p99Micros };
}

function summarize({ name, runs }) {
  const figures = ['perSecond', 'cpuMicros', 'redisCpuMicros', 'p99Micros'].filter(
    (figure) => runs[0][figure] !== undefined,
  );
  return {
    program: name,
    ...Object.fromEntries(
      figures.map((figure) => [figure, summary(runs.map((run) => run[figure]))]),
    ),
  };
}

/** Of the CPU for a call, round by round. */
function ratiosOf(lines) {
  const of = (figure, one, other) => {
    const [values, others] = [one, other].map((name) =>
      lines.find((line) => line.name === name)?.runs.map((run) => run[figure]),
    );
    return values && others && ratio(values, others);
  };
  return {
    redisToHttp: of('redisCpuMicros', 'sluice', 'sluice, over HTTP'),
    bareToHttp: of('cpuMicros', 'bare-http2', 'embedded, over HTTP'),
    toEnvoyRatelimit: of('cpuMicros', 'sluice', 'envoy-ratelimit'),
    toLimitador: of('cpuMicros', 'sluice', 'limitador-redis'),
  };
}

function programsOf({ with: paths }) {
  const sluice = (name, usesRedis) => ({
    name,
    usesRedis,
    start: async ({ redis, limit }) => {
      const rlsPort = await freePort();
      const server = await Server.start(name, SLUICE, {
        MAX_REQUESTS: String(limit),
        GRPC_PORT: String(rlsPort),
        ...(usesRedis ? { REDIS_URL: redis.url } : {}),
      });
      return Object.assign(server, { rlsPort });
    },
  });
  const peers = Object.fromEntries(
    PEERS.flatMap((name) => (paths[name] ? [[name, paths[name]]] : [])),
  );
  return [
    sluice('sluice', true),
    sluice('embedded', false),
    ...nativePeersOf(peers),
    {
      name: 'bare-http2',
      usesRedis: false,
      start: async () => {
        const server = await Server.start('bare-http2', peer('bare-http2'));
        return Object.assign(server, { rlsPort: server.port });
      },
    },
  ];
}
