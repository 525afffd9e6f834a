/**
 * What can be lost while requests wait, what notices it, and after how long. Each mechanism has its interval from here. What a
 * replica notices makes it doubt its places, and ask Redis about them by a settle. docs/reliability.md has what a loss costs.
 *
 *     lost                          noticed by                                        after
 *     a wake                        its number, in the next wake or reply             WAKE_GRACE_MILLIS
 *                                   its number, in the renewal of the lease           RENEWAL
 *     the message of lost memory    the number of places, in the renewal of the lease RENEWAL
 *     the window leader, or that    the timer of each other replica, drawn from once  WAKE_GRACE_MILLIS
 *       it has resigned             to twice                                            after the window's end
 *     a call, or its answer         its deadline                                      STORE_TIMEOUT_MILLIS
 *     the connection of calls       calls that fail, then the probes of the breaker   LONGEST_BACKOFF_MILLIS
 *     the connection of messages    its heartbeat; the new subscription says so       HEARTBEAT_MILLIS
 *     a primary that is replaced    both of these, as its connections end
 *     a slot that has moved         the subscription, which the server ends, or the   TOPOLOGY_INTERVAL_MILLIS
 *                                   look-up of the topology
 *     memory, all or a name         the first call that would approve anybody         at once
 *     time of this replica          its lease, before and after each settle           at once
 *     another replica               its lease in Redis, by any call                   the lease
 *     time of all replicas, but     the history of a caller: recovery in lua          CONTACT_GAP
 *       not of Redis; or both
 *
 * None of these covers another within the same time. A settle after LEASES_UNSETTLED notices no loss: it prolongs the
 * expiry of the names, which renewals do not, clears entries of withdrawn waiters away, and corrects clocks that drift apart.
 */

/**
 * Replies and wakes come on different connections, so a reply may overtake the wake that it tells of. In this time the
 * wake comes, unless it is lost. A follower waits at least as long for the window leader.
 */
export const WAKE_GRACE_MILLIS = 50;

/** A replica renews its lease when this part of it is over, at the latest. `lua/lib/recovery.lua` relies on it. */
export const RENEWAL = 1 / 3;

/** A key to which nothing happens is settled again within this number of leases. `lua/lib/instance.lua` relies on it. */
export const LEASES_UNSETTLED = 15;
/** The least number of leases between two such settles. It is drawn, so that not all keys are settled at once. */
export const LEAST_UNSETTLED = 10;

/** The interval at which each shard is asked for its time, as a part of a lease. */
export const BEAT = 1 / 6;
/** Redis was down if it has not answered for this part of a lease. `lua/lib/recovery.lua` has the same. */
export const CONTACT_GAP = 1 / 2;

/** How often a connection that only receives is pinged. */
export const HEARTBEAT_MILLIS = 2000;
/** How often the topology of a cluster is looked up if nothing shows a change. */
export const TOPOLOGY_INTERVAL_MILLIS = 5000;

/**
 * The longest wait between two attempts to reach Redis, so that a replica notices its return within this time.
 * `lua/lib/recovery.lua` relies on it: a recovery lasts longer, so that the waiters of all replicas can come back.
 */
export const LONGEST_BACKOFF_MILLIS = 250;
