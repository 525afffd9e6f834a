import { setTimeout as delay } from 'node:timers/promises';

import { askReplica, Client } from './client.mjs';
import {
  APPROVED_BEFORE_KILL,
  ARRIVALS_TAKE,
  KEY,
  KILL_AT,
  KILLED,
  MAX_REQUESTS,
  replicaOfClient,
} from './setting.mjs';

const TICK_MILLIS = 10;
/** A story that takes this many times its planned time is stuck. */
const PATIENCE = 3;

/**
 * Lets clients wait, kills a replica, and reports everything that happens as events with a name and properties.
 * `millis` is the time since the first window began.
 */
export class Story {
  #clients = [];
  #told = { windows: new Map(), decided: new Set(), approvals: 0, isPassedOver: false };
  #killed;

  /**
   * @param replicas the started ones, and `account` of their Redis
   * @param tell called with each event
   */
  constructor({ replicas, account, clients, windowMillis, tell }) {
    this.replicas = replicas;
    this.account = account;
    this.count = clients;
    this.windowMillis = windowMillis;
    this.tell = tell;
  }

  /** Resolves when each client is approved or lost, or when nothing happens any more. */
  async run() {
    await this.#fillFirstWindow();
    await this.#letClientsCome();
    const windows = this.count / MAX_REQUESTS + 2;
    const giveUpAt = Date.now() + windows * PATIENCE * this.windowMillis;
    while (!this.#isOver() && Date.now() < giveUpAt) {
      await this.#tick();
      if (!this.#killed && this.#isTimeToKill()) this.#kill();
    }
  }

  async #fillFirstWindow() {
    for (let i = 0; i < MAX_REQUESTS; i += 1) {
      const { status } = await askReplica(this.replicas[i % this.replicas.length], KEY);
      if (status !== 200) throw new Error(`a check of a new key was answered with ${status}`);
    }
    await this.#tick();
    const { start } = this.account.windows[0];
    this.#tell('filled', start, { approved: MAX_REQUESTS });
  }

  /** Clients come one after the other, so that their order is the order of the queue. */
  async #letClientsCome() {
    const startedAt = Date.now();
    for (let number = 1; number <= this.count; number += 1) {
      const dueAt = startedAt + (number * ARRIVALS_TAKE * this.windowMillis) / this.count;
      const replica = this.replicas.find(({ name }) => name === replicaOfClient(number));
      const client = new Client(number, replica);
      this.#clients.push(client);
      void client.ask(KEY);
      do await this.#tick();
      while (!this.#hasCome(client));
      this.#tell('arrived', client.arrivedAt, { client: number, replica: replica.name });
      while (Date.now() < dueAt) await this.#tick();
    }
  }

  /** Whether the client has a place in the queue, or was answered at once. */
  #hasCome(client) {
    const last = this.account.queue.at(-1);
    const isKnown = this.#clients.some(({ requestId }) => requestId === last?.id);
    if (last && !isKnown) client.requestId ??= last.id;
    const { requestId, outcome } = client;
    if (outcome === 'approved' && !this.account.approvals.includes(requestId)) {
      // No client waited, so it was not approved from the queue.
      this.account.approvals.push(requestId);
    }
    return requestId !== undefined || outcome !== 'undecided';
  }

  async #tick() {
    await delay(TICK_MILLIS);
    await this.account.read();
    this.#tellWindows();
    this.#tellLosses();
    this.#tellApprovals();
    this.#tellLease();
  }

  #tellWindows() {
    for (const { number, start, approved } of this.account.windows.slice(-2)) {
      if (this.#told.windows.get(number) === approved) continue;
      this.#told.windows.set(number, approved);
      this.#tell('window', start, { window: number, approved });
    }
  }

  #tellLosses() {
    for (const client of this.#clients) {
      const { number, replica, outcome, status, decidedAt } = client;
      if (this.#told.decided.has(client) || !['lost', 'notApproved'].includes(outcome)) continue;
      this.#told.decided.add(client);
      this.#tell(outcome, decidedAt, { client: number, replica: replica.name, status });
    }
  }

  /** Reports approvals in Redis's order, each once its client has the answer or can not get one. */
  #tellApprovals() {
    const { approvals } = this.account;
    for (; this.#told.approvals < approvals.length; this.#told.approvals += 1) {
      const id = approvals[this.#told.approvals];
      const window = this.account.windowOf(id);
      const client = this.#clients.find(({ requestId }) => requestId === id);
      if (window === undefined || client === undefined || client.outcome === 'undecided') return;
      this.#told.decided.add(client);
      const details = { client: client.number, replica: client.replica.name, window };
      if (client.outcome === 'approved') this.#tell('approved', client.decidedAt, details);
      else this.#tell('unheard', this.account.readAt, details);
    }
  }

  #tellLease() {
    if (!this.#killed || this.#told.isPassedOver) return;
    const end = this.account.leases.get(this.#killed.id) ?? 0;
    if (end > this.account.readAt) return;
    this.#told.isPassedOver = true;
    this.#tell('passedOver', end || this.account.readAt, { replica: this.#killed.name });
  }

  #isTimeToKill() {
    const windowAge = (this.account.readAt - this.account.windows.at(-1).start) / this.windowMillis;
    return this.#told.approvals >= this.count * APPROVED_BEFORE_KILL && windowAge >= KILL_AT;
  }

  #kill() {
    this.#killed = this.replicas.find(({ name }) => name === KILLED);
    this.#killed.kill();
    this.#tell('killed', Date.now(), { replica: KILLED });
  }

  #isOver() {
    return (
      this.#killed !== undefined && this.#clients.every((client) => this.#told.decided.has(client))
    );
  }

  #tell(event, at, details) {
    this.tell({ event, millis: at - this.account.windows[0].start, ...details });
  }
}
