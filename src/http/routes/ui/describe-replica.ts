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

/** The replica that answers. Behind a load balancer, another replica may answer the next request. */
export interface DescribedReplica {
  readonly replica: string;
  readonly store: 'memory' | `redis ${Settings['REDIS_MODE']}`;
  /** Its problems, as `/readyz` reports them; empty if there are none. */
  readonly problems: readonly string[];
  readonly rules: {
    readonly count: number;
    readonly digest: string;
    readonly isStale: boolean;
  };
}

/** What the head of the page shows. */
export async function describeReplica(parts: ReplicaParts): Promise<DescribedReplica> {
  const { rules, settings, replica } = parts;
  const { reasons, remarks } = await parts.readiness.assess();
  return {
    replica,
    store: settings.REDIS_URL === undefined ? 'memory' : `redis ${settings.REDIS_MODE}`,
    problems: [...reasons, ...remarks],
    rules: {
      count: rules.current.rules.length,
      digest: rules.current.digest,
      isStale: rules.isStale,
    },
  };
}
