import { setTimeout as delay } from 'node:timers/promises';

import { askReplica, Client } from './client.mjs';
import {
  APPROVED_BEFORE_KILL,
  ARRIVALS_TAKE,
  KEY,
  KILL_AT,
  KILLED,
  MAX_REQUESTS,
  replicasOfClient,
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
  #told = { windows: new Map(), moves: new Map(), decided: new Set(), approvals: 0 };
  #isKilled = false;

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

  /** Resolves when each client is decided, or when nothing happens any more. */
  async run() {
    await this.#fillFirstWindow();
    await this.#letClientsCome();
    const windows = this.count / MAX_REQUESTS + 2;
    const giveUpAt = Date.now() + windows * PATIENCE * this.windowMillis;
    while (!this.#isOver() && Date.now() < giveUpAt) {
      await this.#tick();
      if (!this.#isKilled && this.#isTimeToKill()) this.#kill();
    }
  }

  async #fillFirstWindow() {
    for (let i = 0; i < MAX_REQUESTS; i += 1) {
      const status = await askReplica(this.replicas[i % this.replicas.length], KEY);
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
      const replicas = replicasOfClient(number).map((wanted) => this.#replica(wanted));
      const client = new Client(number, replicas);
      this.#clients.push(client);
      void client.ask(KEY);
      do await this.#tick();
      while (!this.#hasCome(client));
      this.#tell('arrived', client.arrivedAt, { client: number, replica: replicas[0].name });
      while (Date.now() < dueAt) await this.#tick();
    }
  }

  /** Whether the client has a place in the queue, or was answered at once. */
  #hasCome({ requestId, outcome }) {
    return this.account.queue.includes(requestId) || outcome !== 'undecided';
  }

  async #tick() {
    await delay(TICK_MILLIS);
    await this.account.read();
    this.#tellWindows();
    this.#tellMoves();
    this.#tellRejections();
    this.#tellApprovals();
  }

  #tellWindows() {
    for (const { number, start, approved } of this.account.windows.slice(-2)) {
      if (this.#told.windows.get(number) === approved) continue;
      this.#told.windows.set(number, approved);
      this.#tell('window', start, { window: number, approved });
    }
  }

  #tellMoves() {
    for (const client of this.#clients) {
      const told = this.#told.moves.get(client) ?? 0;
      for (const { lostAt, from, returnedAt, to } of client.moves.slice(told)) {
        this.#tell('lost', lostAt, { client: client.number, replica: from.name });
        this.#tell('returned', returnedAt, { client: client.number, replica: to.name });
      }
      this.#told.moves.set(client, client.moves.length);
    }
  }

  #tellRejections() {
    for (const client of this.#clients) {
      const { number, replica, outcome, status, decidedAt } = client;
      if (this.#told.decided.has(client) || outcome !== 'notApproved') continue;
      this.#told.decided.add(client);
      this.#tell(outcome, decidedAt, { client: number, replica: replica.name, status });
    }
  }

  /** Reports approvals in Redis's order, each once its client has the answer. */
  #tellApprovals() {
    const { approvals } = this.account;
    for (; this.#told.approvals < approvals.length; this.#told.approvals += 1) {
      const id = approvals[this.#told.approvals];
      const window = this.account.windowOf(id);
      const client = this.#clients.find(({ requestId }) => requestId === id);
      if (window === undefined || client?.outcome !== 'approved') return;
      this.#told.decided.add(client);
      const { number, replica, decidedAt } = client;
      this.#tell('approved', decidedAt, { client: number, replica: replica.name, window });
    }
  }

  #isTimeToKill() {
    const windowAge = (this.account.readAt - this.account.windows.at(-1).start) / this.windowMillis;
    return this.#told.approvals >= this.count * APPROVED_BEFORE_KILL && windowAge >= KILL_AT;
  }

  #kill() {
    this.#isKilled = true;
    this.#replica(KILLED).kill();
    this.#tell('killed', Date.now(), { replica: KILLED });
  }

  #isOver() {
    return this.#isKilled && this.#clients.every((client) => this.#told.decided.has(client));
  }

  #replica(wanted) {
    return this.replicas.find(({ name }) => name === wanted);
  }

  #tell(event, at, details) {
    this.tell({ event, millis: at - this.account.windows[0].start, ...details });
  }
}
