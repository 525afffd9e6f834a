import { Agent, type ClientRequestArgs } from 'node:http';
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';

/**
 * A Service of Kubernetes with kube-proxy: a new connection goes to the next endpoint in turn, and stays with it
 * even if the endpoints change. No proxy is in between that would retry.
 */
export class Service {
  #endpoints: readonly string[];
  /** The endpoints that clients have connected to, as host and port. */
  readonly connectedTo = new Set<string>();
  #connections = 0;

  /** @param replicas the endpoints, by their URLs */
  constructor(replicas: readonly string[]) {
    this.#endpoints = replicas;
  }

  /** Sends new connections to these endpoints from now on. */
  setEndpoints(replicas: readonly string[]): void {
    this.#endpoints = replicas;
  }

  /** An agent for a client that keeps its connection. */
  agent(): Agent {
    return new ServiceAgent(() => this.#connect());
  }

  #connect(): Duplex {
    const { hostname, port, host } = new URL(
      this.#endpoints[this.#connections % this.#endpoints.length]!,
    );
    this.#connections += 1;
    this.connectedTo.add(host);
    return connect(Number(port), hostname);
  }
}

class ServiceAgent extends Agent {
  constructor(private readonly open: () => Duplex) {
    super({ keepAlive: true, maxSockets: 1 });
  }

  override createConnection(_options: ClientRequestArgs): Duplex {
    return this.open();
  }
}
