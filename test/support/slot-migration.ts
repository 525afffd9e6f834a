import type { ClusterNode } from './cluster-node.js';

/** The timeout of `redis-cli --cluster reshard`, long enough for a slow node. */
const MIGRATE_TIMEOUT_MILLIS = 60_000;

export interface MigrationSteps {
  /**
   * Called before the first key of the slot has moved, and again after each step, with the number of keys
   * that have moved so far.
   */
  readonly betweenSteps?: (moved: number) => Promise<void> | void;
}

export interface SlotMigration extends MigrationSteps {
  readonly slot: number;
  readonly source: ClusterNode;
  readonly target: ClusterNode;
  /** All primaries of the cluster, including source and target. */
  readonly primaries: readonly ClusterNode[];
}

/**
 * Moves a slot and its keys in the same order as `redis-cli --cluster reshard`.
 * https://redis.io/docs/latest/commands/cluster-setslot/#redis-cluster-live-resharding-explained
 */
export async function migrateSlot(migration: SlotMigration): Promise<void> {
  const { slot, source, target, primaries, betweenSteps } = migration;
  await target.command('CLUSTER', 'SETSLOT', slot, 'IMPORTING', source.id);
  await source.command('CLUSTER', 'SETSLOT', slot, 'MIGRATING', target.id);
  for (let moved = 0; ;) {
    await betweenSteps?.(moved);
    const keys = (await source.command('CLUSTER', 'GETKEYSINSLOT', slot, 1)) as string[];
    if (keys.length === 0) break;
    const address = ['127.0.0.1', target.port, ''] as const;
    await source.command('MIGRATE', ...address, 0, MIGRATE_TIMEOUT_MILLIS, 'KEYS', ...keys);
    moved += keys.length;
  }
  // The target first: if the source came first and failed then, the slot would have no owner.
  const others = primaries.filter((node) => node !== source && node !== target);
  for (const node of [target, source, ...others]) {
    await node.command('CLUSTER', 'SETSLOT', slot, 'NODE', target.id);
  }
}
