import type { Settings } from '../../../config/settings.js';
import type { Readiness } from '../../../readiness/readiness.js';
import type { Rules } from '../../../rules/rules.js';

export interface ReplicaParts {
  readonly rules: Pick<Rules, 'current' | 'isStale'>;
  readonly readiness: Pick<Readiness, 'assess'>;
  readonly settings: Pick<Settings, 'REDIS_URL' | 'REDIS_MODE'>;
  /** The name of this replica. */
  readonly replica: string;
}

export type DescribedReplica = Readonly<Awaited<ReturnType<typeof describeReplica>>>;

/**
 * What the head of the page shows: the replica that answers. Behind a load balancer, another one may answer the next
 * request.
 */
export async function describeReplica(parts: ReplicaParts) {
  const { rules, settings, replica } = parts;
  const { reasons, remarks } = await parts.readiness.assess();
  return {
    replica,
    store: settings.REDIS_URL === undefined ? 'memory' : `redis ${settings.REDIS_MODE}`,
    /** As `/readyz` reports them; empty if there are none. */
    problems: [...reasons, ...remarks],
    rules: {
      count: rules.current.rules.length,
      digest: rules.current.digest,
      isStale: rules.isStale,
    },
  };
}
