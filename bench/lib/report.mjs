// The results as Markdown, which is also readable in a terminal.
import { goals } from './goals.mjs';

export function report(results) {
  const sections = [
    machineSection(results),
    ...(results.throughput ?? []).map(throughputSection),
    latencySection(results.latency),
    ...(results.rls ?? []).map(rlsSection),
    wakeSection(results.wake),
    waitersSection(results['many-waiters']),
    keptWaitersSection(results['kept-waiters']),
    listsSection(results.lists),
    idleSection(results['idle-waiting']),
    manyAtOnceSection(results['many-at-once']),
    clientSection(results.client),
    keysSection(results['many-keys']),
    debugSection(results.debug),
    loggedSection(results.logged),
    rulesSection(results.rules),
    rawSection(results['raw-scripts']),
    termsSection(results.terms),
    algorithmsSection(results.algorithms),
    pacedSection(results['paced-waiters']),
    ...(results.cluster?.loads ?? []).map((load) => clusterSection(results.cluster, load)),
    ...sizingSections(results.sizing),
    startsSection(results.starts),
    regressSection(results.regress),
    instructionsSection(results.regress),
    goalsSection(results),
  ];
  return sections.filter((section) => section !== undefined).join('\n');
}

function machineSection({ measuredAt, command, machine }) {
  return [
    `Measured on ${measuredAt} by \`${command}\`.`,
    '',
    `- Machine: ${machine.processor}, ${machine.cores} cores, ${machine.memoryGiB} GiB, ${machine.system}`,
    `- Node ${machine.node}, Redis ${machine.redis}`,
    `- Load: ${machine.loadGenerator}; latency at a rate, and waiters: ${machine.latencyGenerator}`,
    `- Peers: ${[...machine.peers, ...machine.nativePeers].join(', ')}`,
    ...(machine.before ? [`- \`before\`: Sluice at ${machine.before}`] : []),
    '',
  ].join('\n');
}

function goalsSection(results) {
  const held = goals(results);
  if (held.length === 0) return undefined;
  const rows = held.map(({ figure, goal, measured, met }) => [
    figure,
    goal,
    measured,
    met ? 'yes' : '**no**',
  ]);
  return section('Goals', ['figure', 'goal', 'measured', 'met'], rows);
}

function throughputSection({ name, programs }) {
  const rows = programs.map((entry) => [
    entry.program,
    spread(entry.perSecond, count),
    spread(entry.p50Micros, millis),
    spread(entry.p99Micros, millis),
    spread(entry.cpuMicros, tenths),
    spread(entry.redisCpuMicros, tenths),
    times(entry.toStock),
    times(entry.toBare),
  ]);
  const head = ['program', 'decisions/s', 'p50 ms', 'p99 ms', 'its CPU µs', 'Redis CPU µs'];
  return section(`Throughput: ${name}`, [...head, 'to stock', 'to bare'], rows);
}

function latencySection(programs) {
  if (!programs) return undefined;
  const rows = programs.map(({ program, perSecond, p50Micros, p99Micros }) => [
    program,
    count(perSecond),
    spread(p50Micros, millis),
    spread(p99Micros, millis),
  ]);
  return section(
    'Latency at half of the peak rate',
    ['program', 'checks/s', 'p50 ms', 'p99 ms'],
    rows,
  );
}

function rlsSection({ name, programs, ratios }) {
  const rows = programs.map(({ program, perSecond, cpuMicros, redisCpuMicros, p99Micros }) => [
    program,
    spread(perSecond, count),
    spread(cpuMicros, tenths),
    redisCpuMicros.median === 0 ? '' : spread(redisCpuMicros, tenths),
    p99Micros === undefined ? '' : spread(p99Micros, millis),
  ]);
  const table = section(
    `Envoy's protocol: ${name}, 64 calls under way on 4 connections, all approved`,
    ['program', 'calls/s', 'its CPU µs', 'Redis CPU µs', 'p99 ms at half the rate'],
    rows,
  );
  return `${table}
The load is one Node process, which makes fewer calls a second than some programs could answer.
A call costs bare node:http2 ${ratios.bareToHttp.toFixed(2)} x the CPU of a check over HTTP.
`;
}

function wakeSection(programs) {
  if (!programs) return undefined;
  const rows = programs.map(({ program, firstMillis, lastMillis }) => [
    program === 'sluice' ? 'sluice, three replicas' : 'bare node:http, one process',
    spread(firstMillis, tenths),
    spread(lastMillis, tenths),
  ]);
  return section('400 waiters', ['program', 'first answer, ms', 'last answer, ms'], rows);
}

function waitersSection(measured) {
  if (!measured) return undefined;
  const row = (when, { besideWaiters, withoutWaiters, toWithout }) => [
    when,
    spread(besideWaiters, count),
    spread(withoutWaiters, count),
    `${toWithout.toFixed(2)} x`,
  ];
  return section(
    `${count(measured.waiters)} waiters on one replica: checks/s on another key`,
    ['when', 'on their replica', 'on one without waiters', 'ratio'],
    [
      row('while they wait', measured.whileHeld),
      row('while they are served', measured.whileServed),
    ],
  );
}

function keptWaitersSection(measured) {
  if (!measured) return undefined;
  const rows = measured.kinds.map((kind) => [
    kind.name,
    spread(kind.replicaBytes, kibibytes),
    spread(kind.redisBytes, count),
    spread(kind.redisMicrosToJoin, tenths),
    spread(kind.redisMicrosToApprove, tenths),
  ]);
  return section(
    `What each of ${count(measured.waiters)} waiters takes`,
    ['waiter', 'replica, KiB', 'Redis, bytes', 'Redis CPU µs to join', 'Redis CPU µs to approve'],
    rows,
  );
}

function listsSection(measured) {
  if (!measured) return undefined;
  const rows = measured.kinds.map((kind) => [
    kind.name,
    spread(kind.bytes, count),
    spread(kind.microsToJoin, tenths),
    spread(kind.microsSingly, tenths),
    spread(kind.microsTogether, tenths),
    spread(kind.microsCold, tenths),
  ]);
  return section(
    `What each of ${count(measured.waiters)} waiters in several lists takes of Redis`,
    [
      'lists',
      'bytes',
      'CPU µs to join',
      'to approve one',
      `each of ${measured.together} in a call`,
      'one after a pause',
    ],
    rows,
  );
}

function idleSection(measured) {
  if (!measured) return undefined;
  const rows = measured.programs.map((entry) => [
    entry.program,
    spread(entry.commandsPerSecond, count),
    spread(entry.redisCpuPercent, tenths),
    spread(entry.replicaCpuPercent, tenths),
  ]);
  return section(
    `${count(measured.keys)} keys with a waiter on each of two replicas, and nothing happens`,
    ['program', 'Redis commands/s', 'Redis CPU, % of a core', 'a replica, % of a core'],
    rows,
  );
}

const LOAD_NAMES = { oneKey: 'one key', manyKeys: '5,000 keys' };

function manyAtOnceSection(measured) {
  if (!measured) return undefined;
  const row = (load, asked, { perSecond, cpuMicros, redisCpuMicros }, toSingle) => [
    load,
    asked,
    spread(perSecond, count),
    spread(cpuMicros, tenths),
    spread(redisCpuMicros, tenths),
    times(toSingle),
  ];
  const rows = Object.entries(LOAD_NAMES).flatMap(([name, load]) => {
    const { single, atOnce, toSingle } = measured[name];
    return [
      row(load, 'single checks', single, 1),
      row(load, `${measured.checks} in a call`, atOnce, toSingle),
    ];
  });
  const head = ['load', 'asked', 'decisions/s', 'replica CPU µs', 'Redis CPU µs', 'to single'];
  return section('Many checks in a call', head, rows);
}

const WAYS = {
  client: 'the Node client',
  nodeSingle: 'node:http, a request for each check',
  single: 'single checks of the load generator',
  limitador: 'Limitador on Redis, by the load generator',
};

function clientSection(measured) {
  if (!measured) return undefined;
  const rows = Object.entries(LOAD_NAMES).flatMap(([name, load]) =>
    Object.entries(measured[name].perSecond).map(([way, perSecond]) => [
      load,
      WAYS[way],
      spread(perSecond, count),
    ]),
  );
  return section(
    `${measured.callers} callers in one Node process`,
    ['load', 'asked by', 'decisions/s'],
    rows,
  );
}

function keysSection(measured) {
  if (!measured) return undefined;
  const rows = [measured.few, measured.many].map(({ keys, perSecond }) => [
    count(keys),
    spread(perSecond, count),
  ]);
  return `${section('Live keys', ['keys', 'decisions/s'], rows)}
The ratio of the two was ${times(measured.leastManyToFew)} in the worst round.
A live key with one approval takes ${Math.round(measured.many.redisBytesPerKey)} bytes of Redis's memory.
`;
}

function debugSection(measured) {
  if (!measured) return undefined;
  const table = section(
    `GET /debug of ${count(measured.keys)} keys`,
    [`p99 of checks at ${count(measured.perSecond)}/s`, 'ms'],
    [
      ['alone', spread(measured.p99MicrosAlone, millis)],
      ['beside the listing', spread(measured.p99MicrosBeside, millis)],
    ],
  );
  const megabytes = (bytes) => (bytes / 1e6).toFixed(1);
  return `${table}
A listing of ${megabytes(measured.bytesPerListing)} MB takes ${measured.secondsPerListing.median.toFixed(1)} s under this load. The replica's memory, garbage included, grew by
${megabytes(Math.max(0, measured.memoryGrowthBytes))} MB meanwhile.
`;
}

function sideRow(name, { perSecond, cpuMicros }) {
  return [name, spread(perSecond, count), spread(cpuMicros, tenths)];
}

function loggedSection(measured) {
  if (!measured) return undefined;
  const { unlogged, logged, loggedToUnlogged } = measured;
  const table = section(
    'The request log: embedded, one key, all approved',
    ['answers', 'decisions/s', 'its CPU µs'],
    [sideRow('not logged', unlogged), sideRow('each logged', logged)],
  );
  return `${table}
A replica that logs each answer makes ${loggedToUnlogged.toFixed(2)} x the decisions/s of one that logs none.
`;
}

function rulesSection(measured) {
  if (!measured) return undefined;
  const rows = [sideRow('none', measured.none), sideRow('1,000', measured.thousand)];
  return section('Rules: embedded, 100,000 keys', ['rules', 'decisions/s', 'its CPU µs'], rows);
}

function clusterSection({ primaries, keys }, { connections, sides }) {
  const rows = sides.map(({ name, perSecond, cpuMicros, redisCpuMicros, p99Micros }) => [
    name,
    spread(perSecond, count),
    spread(cpuMicros, tenths),
    spread(redisCpuMicros, tenths),
    p99Micros === undefined ? '' : spread(p99Micros, millis),
  ]);
  return section(
    `One Redis and a cluster of ${primaries}: ${count(keys)} keys, ${connections} connections`,
    ['build, store', 'decisions/s', 'replica CPU µs', 'Redis CPU µs', 'p99 ms at half the rate'],
    rows,
  );
}

function sizingSections(measured) {
  if (!measured) return [];
  const { onOneRedis, byReplicas, onCluster, costs, prediction } = measured;
  const head = ['load', 'decisions/s', 'calls per decision', 'replica CPU µs', 'Redis CPU µs'];
  const figures = ({ calls, replicaMicros, redisMicros }) => [
    calls.toFixed(2),
    tenths(replicaMicros),
    tenths(redisMicros),
  ];
  const row = (point) => [point.title, count(point.perSecond), ...figures(point)];
  const cost = (title, { replica, redis }) => [
    title,
    ...[replica.check, replica.call, redis.check, redis.call].map(tenths),
  ];
  return [
    section('Sizing: one replica on one Redis', head, onOneRedis.map(row)),
    section('Sizing: replicas on one Redis', head, byReplicas.map(row)),
    section('Sizing: primaries of a cluster', head, onCluster.map(row)),
    section(
      'Sizing: fitted costs in µs',
      ['on', 'replica, check', 'replica, call', 'Redis, check', 'Redis, call'],
      [cost('one Redis', costs.oneRedis), cost('three primaries', costs.cluster)],
    ),
    section(
      `Sizing: ${prediction.title}, predicted by three and measured`,
      ['', ...head.slice(2)],
      [
        ['predicted', ...figures(prediction)],
        ['measured', ...figures(prediction.measured)],
      ],
    ),
  ];
}

function startsSection(measured) {
  if (!measured) return undefined;
  const head = ['core', 'processes', 'CPU µs per decision', 'medians of processes'];
  const more = ['slowest round to fastest', 'first half to second', 'to reads', 'ns per read'];
  const rows = measured.onCores.map((on) => [
    String(on.core),
    String(on.processes),
    spread(on.micros, tenths),
    spread(on.betweenProcesses, tenths),
    times(on.withinProcesses),
    on.betweenHalves.toFixed(2),
    on.withReads.toFixed(2),
    spread(on.readNanos, tenths),
  ]);
  return section('Starts of one build', [...head, ...more], rows);
}

function rawSection(commands) {
  if (!commands) return undefined;
  const rows = commands.map(({ name, decisionsPerSecond }) => [
    name,
    spread(decisionsPerSecond, count),
  ]);
  return section('Redis alone, by redis-benchmark', ['call', 'decisions/s'], rows);
}

function termsSection(cases) {
  if (!cases) return undefined;
  const rows = cases.map(({ name, redisMicros, bytesPerApproval }) => [
    name,
    spread(redisMicros, tenths),
    count(bytesPerApproval),
  ]);
  return section(
    'Hits, holds and several limits: one check a call',
    ['key and checks', "Redis's µs for each check", 'bytes for each approval'],
    rows,
  );
}

function algorithmsSection(limiters) {
  if (!limiters) return undefined;
  const rows = limiters.map(({ name, warmMicros, coldMicros, bytesPerKey, bytesPerApproval }) => [
    name,
    spread(warmMicros, tenths),
    spread(coldMicros, tenths),
    count(bytesPerKey),
    count(bytesPerApproval),
  ]);
  return section(
    'Algorithms: one check a call',
    [
      'limit',
      "Redis's µs for each check, warm",
      'cold',
      'bytes for a key',
      'bytes for each further approval',
    ],
    rows,
  );
}

function pacedSection(crowds) {
  if (!crowds) return undefined;
  const rows = crowds.map((crowd) => [
    count(crowd.waiters),
    count(crowd.perSecond),
    spread(crowd.servedPerSecond, count),
    spread(crowd.callsPerSecond, count),
    spread(crowd.redisCpuPercent, tenths),
    spread(crowd.delayMillis.median, tenths),
    spread(crowd.delayMillis.p99, tenths),
  ]);
  return section(
    'Waiters of a token bucket, three replicas',
    [
      'waiters',
      'pace, a second',
      'served/s',
      'script calls/s',
      'Redis CPU, % of a core',
      'delay p50 ms',
      'delay p99 ms',
    ],
    rows,
  );
}

function regressSection(measured) {
  if (!measured) return undefined;
  const rows = measured.cases.map(({ name, cpuMicros, redisCpuMicros }) => [
    name,
    ...[cpuMicros, redisCpuMicros].flatMap((figure) =>
      figure
        ? [tenths(figure.base.median), tenths(figure.now.median), spread(figure.ratio, hundredths)]
        : ['', '', ''],
    ),
  ]);
  const [own, inRedis] = ['its CPU µs', 'Redis CPU µs'];
  return section(
    `This build beside ${measured.base}, for each decision or flow`,
    ['case', `${own}, base`, 'now', 'ratio', `${inRedis}, base`, 'now', 'ratio'],
    rows,
  );
}

function instructionsSection(measured) {
  if (!measured?.instructions) return undefined;
  const rows = measured.instructions.map(({ name, base, now, ratio }) => [
    name,
    count(base),
    count(now),
    ratio.toFixed(3),
  ]);
  return section(
    `Redis's instructions for a plain check, beside ${measured.base}`,
    ['a call with', 'base', 'now', 'ratio'],
    rows,
  );
}

const count = (value) => Math.round(value).toLocaleString('en-US');
const millis = (micros) => (micros / 1000).toFixed(2);
const kibibytes = (bytes) => (bytes / 1024).toFixed(1);
const tenths = (value) => value.toFixed(1);
const hundredths = (value) => value.toFixed(2);
const times = (value) => (value === undefined ? '' : `${value.toFixed(2)} x`);

function spread({ median, min, max }, format) {
  return `${format(median)} (${format(min)} to ${format(max)})`;
}

function section(title, head, rows) {
  const cells = [head, ...rows];
  const widths = head.map((_, column) => Math.max(3, ...cells.map((row) => row[column].length)));
  const line = (row) => `| ${row.map((cell, i) => cell.padEnd(widths[i])).join(' | ')} |`;
  const rule = `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`;
  return [`### ${title}`, '', line(head), rule, ...rows.map(line), ''].join('\n');
}
