// The goals of Sluice, as ratios within one run, and their measured values.

/** @returns {{figure: string, goal: string, measured: string, met: boolean}[]} */
export function goals(results) {
  return [
    ...throughputGoals(results.throughput),
    ...sideBySideGoals(results.throughput),
    ...latencyGoals(results.latency),
    ...(results.rls ?? []).flatMap(rlsGoals),
    ...wakeGoals(results.wake),
    ...waiterGoals(results['many-waiters']),
    ...idleGoals(results['idle-waiting']),
    ...manyAtOnceGoals(results['many-at-once']),
    ...clientGoals(results.client),
    ...keyGoals(results['many-keys']),
    ...debugGoals(results.debug),
    ...ruleGoals(results.rules),
    ...algorithmGoals(results.algorithms),
    ...pacedGoals(results['paced-waiters']),
    ...clusterGoals(results.cluster),
    ...regressGoals(results.regress),
  ];
}

const atLeast = (figure, measured, goal) => ({
  figure,
  goal: `>= ${goal} x`,
  measured: `${measured.toFixed(2)} x`,
  met: measured >= goal,
});
const atMost = (figure, measured, goal, unit = ' x') => ({
  figure,
  goal: `<= ${goal}${unit}`,
  measured: `${measured.toFixed(2)}${unit}`,
  met: measured <= goal,
});

function throughputGoals(workloads) {
  if (!workloads) return [];
  const of = (workload, program) =>
    workloads[workload].programs.find((entry) => entry.program === program);
  const [hot, many] = [of(0, 'sluice'), of(1, 'sluice')];
  return [
    atLeast('decisions/s, one key, against the stock peer', hot.toStock, 3.2),
    atLeast('decisions/s, 5,000 keys, against the stock peer', many.toStock, 2.3),
    atLeast('decisions/s, one key, against bare node:http', hot.toBare, 0.5),
    atLeast('decisions/s, 5,000 keys, against bare node:http', many.toBare, 0.33),
    atLeast(
      'decisions/s, embedded, one key, against bare node:http',
      of(0, 'embedded').toBare,
      0.6,
    ),
    atMost('Redis CPU per decision, one key, against the stock peer', hot.redisCpuToStock, 0.4),
    atMost('Redis CPU per decision, 5,000 keys, against the stock peer', many.redisCpuToStock, 1.5),
  ];
}

/** One key is nearly always denied here, as in the independent measurements from before the goals. */
function sideBySideGoals(workloads) {
  if (!workloads) return [];
  const [one, many, hot, twice] = workloads.map(({ ratios }) => ratios);
  const [redis, replica] = ['Redis CPU per decision', 'replica CPU per decision'];
  const limitador = 'against Limitador on Redis';
  const decisions = 'decisions/s, embedded';
  const ofAll = [
    [atMost, `${redis}, 5,000 keys, against the build before`, many.redisCpuToBefore, 1],
    [atMost, `${redis}, 5,000 keys, ${limitador}`, many.redisCpuToLimitador, 1.1],
    [atMost, `${redis}, each twice a window, against before`, twice?.redisCpuToBefore, 1],
    [atMost, `${redis}, each twice a window, ${limitador}`, twice?.redisCpuToLimitador, 1.2],
    [atMost, `${redis}, one key, against the build before`, hot.redisCpuToBefore, 1],
    [atMost, `${replica}, one key, ${limitador}`, hot.cpuToLimitador, 1],
    [atMost, `${replica}, 5,000 keys, ${limitador}`, many.cpuToLimitador, 0.9],
    [atMost, `${replica}, one key, against bare node:http`, hot.cpuToBare, 1.7],
    [atMost, `${replica}, 5,000 keys, against bare node:http`, many.cpuToBare, 1.5],
    [
      atMost,
      `${replica}, embedded, one key, all approved, against bare node:http`,
      one.embeddedCpuToBare,
      1.25,
    ],
    [atLeast, `${decisions}, one key, against GoCC`, hot.embeddedToGocc, 0.9],
    [atLeast, `${decisions}, 5,000 keys, against GoCC`, many.embeddedToGocc, 1.1],
  ];
  return measuredOf(ofAll);
}

/** Only goals with a measurement. */
function measuredOf(rows) {
  return rows
    .filter(([, , measured]) => measured !== undefined)
    .map(([compare, figure, measured, goal]) => compare(figure, measured, goal));
}

function latencyGoals(programs) {
  if (!programs) return [];
  const p99 = (name) => programs.find(({ program }) => program === name).p99Micros.median / 1000;
  const [sluice, stock, bare] = ['sluice', 'rate-limiter-flexible', 'bare'].map(p99);
  return [
    {
      figure: "p99 at half of its peak rate, against the stock peer's at half of its own",
      goal: `< ${stock.toFixed(2)} ms`,
      measured: `${sluice.toFixed(2)} ms`,
      met: sluice < stock,
    },
    {
      figure:
        'p99 at half of its peak rate, over the round trip to bare node:http (p99, same rate)',
      goal: '< 1 ms over',
      measured: `${(sluice - bare).toFixed(2)} ms over`,
      met: sluice - bare < 1,
    },
  ];
}

function rlsGoals({ name, ratios }) {
  const call = `CPU of a call of Envoy's protocol, ${name}`;
  return measuredOf([
    [atMost, `Redis's ${call}, against a check over HTTP`, ratios.redisToHttp, 1.2],
    [atMost, `${call}, on Redis, against Envoy ratelimit`, ratios.toEnvoyRatelimit, 1],
    [atMost, `${call}, on Redis, against Limitador`, ratios.toLimitador, 1],
  ]);
}

function wakeGoals(programs) {
  if (!programs) return [];
  const [sluice, bare] = programs;
  return [
    atMost(
      "a window's end to the last of 400 waiters, against a bare server with as many",
      sluice.lastMillis.median / bare.lastMillis.median,
      2,
    ),
    atMost("a window's end to the first of them", sluice.firstMillis.median, 3, ' ms'),
  ];
}

function waiterGoals(measured) {
  if (!measured) return [];
  return [
    atMost('memory of each of 10,000 waiters', measured.bytesPerWaiter / 1024, 20, ' KiB'),
    {
      figure: 'the 10,000 served in order',
      goal: 'all',
      measured: measured.servedInOrder ? 'all' : 'not all',
      met: measured.servedInOrder,
    },
    atLeast(
      'checks on other keys while they wait, against a replica without waiters',
      measured.whileHeld.toWithout,
      0.8,
    ),
    atLeast(
      'checks on other keys while they are served, against a replica without waiters',
      measured.whileServed.toWithout,
      0.8,
    ),
  ];
}

function idleGoals(measured) {
  if (!measured) return [];
  const waiting = 'while 3,000 keys wait on two replicas, against the build before';
  return measuredOf([
    [atMost, `CPU of Redis ${waiting}`, measured.redisCpuToBefore, 1],
    [atMost, `CPU of a replica ${waiting}`, measured.replicaCpuToBefore, 1],
  ]);
}

function manyAtOnceGoals(measured) {
  if (!measured) return [];
  const figure = `decisions/s, ${measured.checks} checks in a call against single ones`;
  return [
    atLeast(`${figure}, one key`, measured.oneKey.toSingle, 7),
    atLeast(`${figure}, 5,000 keys`, measured.manyKeys.toSingle, 3.5),
  ];
}

function clientGoals(measured) {
  if (!measured) return [];
  const figure = `decisions/s, ${measured.callers} callers of the Node client`;
  const { oneKey, manyKeys } = measured;
  return measuredOf([
    [atLeast, `${figure} against single checks, one key`, oneKey.toSingle, 5],
    [atLeast, `${figure} against single checks, 5,000 keys`, manyKeys.toSingle, 5],
    [atLeast, `${figure} against Limitador on Redis, one key`, oneKey.toLimitador, 2],
    [atLeast, `${figure} against Limitador on Redis, 5,000 keys`, manyKeys.toLimitador, 2],
  ]);
}

function keyGoals(measured) {
  if (!measured) return [];
  const figure = 'decisions/s, 1,000,000 live keys against 1,000';
  return [
    atLeast(figure, measured.manyToFew, 0.9),
    atLeast(`${figure}, in each round`, measured.leastManyToFew, 0.9),
    {
      figure: "Redis's memory for a live key with one approval",
      goal: '<= 400 bytes',
      measured: `${Math.round(measured.many.redisBytesPerKey)} bytes`,
      met: measured.many.redisBytesPerKey <= 400,
    },
  ];
}

function debugGoals(measured) {
  if (!measured) return [];
  return [
    atMost(
      'p99 of checks beside GET /debug of 100,000 keys, against without',
      measured.besideToAlone,
      3,
    ),
  ];
}

function ruleGoals(measured) {
  if (!measured) return [];
  const figure = 'decisions/s with 1,000 rules over 100,000 keys, against none';
  return [atLeast(figure, measured.thousandToNone, 0.97)];
}

function algorithmGoals(limiters) {
  return (limiters ?? [])
    .filter(({ name }) => /sliding window|token bucket/.test(name))
    .map(({ name, warmToPlain }) =>
      atMost(`Redis's time for a warm check, ${name}, against a fixed window`, warmToPlain, 2),
    );
}

function pacedGoals(crowds) {
  return (crowds ?? [])
    .filter(({ perSecond }) => perSecond === 1000)
    .map(({ waiters, redisCpuPercent }) =>
      atMost(
        `Redis's CPU while a bucket serves ${waiters} waiters, 1,000 a second`,
        redisCpuPercent.median,
        10,
        ' % of a core',
      ),
    );
}

/**
 * The ratios that tell what a build costs beside another one. Of Redis and plain checks its instructions tell it, where they were
 * counted: a faster replica calls it with fewer checks each time, which costs Redis more CPU for each.
 */
export function regressRatios(measured) {
  const { cases = [], instructions = [] } = measured ?? {};
  const ofCases = cases.flatMap(({ name, cpuMicros, redisCpuMicros }) => {
    const isPlain = name.startsWith('plain');
    const isCounted = isPlain && instructions.length > 0;
    return [
      { figure: `CPU, ${name}`, isPlain, ratio: cpuMicros.ratio.median },
      {
        figure: `Redis's CPU, ${name}`,
        isPlain,
        ratio: isCounted ? undefined : redisCpuMicros?.ratio.median,
      },
    ];
  });
  const counted = instructions.map(({ name, ratio }) => ({
    figure: `Redis's instructions, a call with ${name}`,
    isPlain: true,
    ratio,
  }));
  return [...ofCases, ...counted].filter(({ ratio }) => ratio !== undefined);
}

/** What a plain check does not use costs it nothing. */
function regressGoals(measured) {
  return regressRatios(measured)
    .filter(({ isPlain }) => isPlain)
    .map(({ figure, ratio }) => atMost(`${figure}, against ${measured.base}`, ratio, 1));
}

/** By the connections of the load: the most CPU of Redis and of the replica on a cluster, against one Redis. */
const CLUSTER_CPU = { 64: [1.7, 1.4], 16: [2, 1.5] };

function clusterGoals(measured) {
  if (!measured) return [];
  return measured.loads.flatMap((load) => {
    const figure = (what) =>
      `${what} on ${measured.primaries} primaries against one Redis, ${load.connections} connections`;
    const [redis, replica] = CLUSTER_CPU[load.connections];
    return [
      atMost(figure('Redis CPU per decision'), load.redisCpuToOne, redis),
      atMost(figure('replica CPU per decision'), load.cpuToOne, replica),
      atMost(figure('p99 at half of the peak rate'), load.p99ToOne, 1.5),
      ...(load.connections === 64
        ? [atLeast(figure('decisions/s by the CPU of Redis'), load.decisionsToOne, 1.75)]
        : []),
    ];
  });
}
