// What a user asks first, answered from the results, for the beginning of BENCHMARKS.md.

/** The programs of the chart and of its table, in their order. */
export const COMPARED = {
  sluice: 'Sluice on Redis',
  'limitador-redis': 'Limitador on Redis',
  'envoy-ratelimit': 'Envoy ratelimit on Redis',
  'rate-limiter-flexible': 'rate-limiter-flexible on Redis, behind Express',
  'express-rate-limit': 'express-rate-limit on Redis, behind Express',
  embedded: 'Sluice in memory',
  limitador: 'Limitador in memory',
  gocc: 'GoCC in memory',
  bare: 'bare node:http, which decides nothing',
};

/** The measured programs among those compared, over many keys. */
export function comparedOverManyKeys({ throughput }) {
  const { programs } = throughput[1];
  return Object.entries(COMPARED).flatMap(([name, title]) => {
    const found = programs.find(({ program }) => program === name);
    return found ? [{ title, ...found }] : [];
  });
}

/** Markdown with the three questions and their answers. A whole run has all results that they need. */
export function answers(results) {
  return [fits(results), costs(results), waits(results)].join('\n');
}

function fits({ machine, throughput, latency, client, 'many-keys': keys }) {
  const [oneKey, manyKeys] = throughput.map(({ programs }) => programOf(programs, 'sluice'));
  const half = programOf(latency, 'sluice');
  const { perSecond } = client.manyKeys;
  return `## Does it fit my load?

- **One replica on one Redis** makes ${count(manyKeys.perSecond.median)} decisions a second over 5,000 keys, and ${count(oneKey.perSecond.median)} on one key. Replica,
  Redis and load generator share ${machine.cores} cores.
- **A decision takes** ${millis(half.p50Micros.median)} ms at half of the peak rate (p50), and ${millis(half.p99Micros.median)} ms at p99.
- **The Node client** sends the checks of a tick together: ${client.callers} callers in one process get ${count(perSecond.client.median)} decisions a second
  over 5,000 keys, instead of ${count(perSecond.nodeSingle.median)} with a request for each.
- **${count(keys.many.keys)} live keys** take ${Math.round(keys.many.redisBytesPerKey)} bytes of Redis each, and leave ${keys.leastManyToFew.toFixed(2)} of the decisions a second of ${count(keys.few.keys)} keys,
  in the worst round.

More replicas add their decisions until Redis is busy. [Sizing](docs/sizing.md) computes how many you need.
`;
}

function costs(results) {
  const rows = comparedOverManyKeys(results).map(({ title, cpuMicros, redisCpuMicros }) => {
    const own = tenths(cpuMicros.median);
    return redisCpuMicros.median === 0
      ? `- ${title}: ${own} µs`
      : `- ${title}: ${own} µs, and ${tenths(redisCpuMicros.median)} µs of Redis`;
  });
  return `## What does it cost beside the others?

CPU is what adds up. This is the CPU of one decision over 5,000 keys, all approved:

![CPU of one decision, of Sluice, its peers and a bare HTTP server](bench/results/published.svg)

${rows.join('\n')}

Sluice also keeps the id of each approval, so that it can be released. [How to read it](#how-to-read-it) says what each
program is.
`;
}

function waits({ wake, 'many-waiters': many, 'idle-waiting': idle }) {
  const [sluice, bare] = ['sluice', 'bare'].map((name) => programOf(wake, name));
  const idleSluice = programOf(idle.programs, 'sluice');
  const range = ({ firstMillis, lastMillis }) =>
    `${tenths(firstMillis.median)} to ${tenths(lastMillis.median)} ms`;
  return `## What does a wait cost?

- **Time**: 400 waiters of three replicas are answered ${range(sluice)} after their window ends. A bare server with 400
  open requests in one process answers them after ${range(bare)}.
- **Memory**: ${(many.bytesPerWaiter / 1024).toFixed(1)} KiB of a replica for each of ${count(many.waiters)} waiters.
- **Others**: beside ${count(many.waiters)} waiters a replica makes ${many.whileHeld.toWithout.toFixed(2)} of its decisions a second on other keys, and ${many.whileServed.toWithout.toFixed(2)} while the waiters
  are served.
- **Idle**: ${count(idle.keys)} keys with a waiter on each of two replicas take ${tenths(idleSluice.redisCpuPercent.median)} % of a core of Redis, and ${tenths(idleSluice.replicaCpuPercent.median)} % of each replica.
`;
}

const programOf = (programs, name) => programs.find(({ program }) => program === name);
const count = (value) => Math.round(value).toLocaleString('en-US');
const tenths = (value) => value.toFixed(1);
const millis = (micros) => (micros / 1000).toFixed(2);
