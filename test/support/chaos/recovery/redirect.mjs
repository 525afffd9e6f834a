// Loaded into a replica by `NODE_OPTIONS`: connections to the ports named in CHAOS_REDIRECTS go to other ports of this
// machine. So every server of Redis can stand behind a proxy, also those whose addresses a Sentinel or a cluster tells.
import { Socket } from 'node:net';

const redirects = JSON.parse(process.env.CHAOS_REDIRECTS);
const { connect } = Socket.prototype;

Socket.prototype.connect = function (...args) {
  // `net.connect` hands on its arguments as a list.
  const [options] = Array.isArray(args[0]) ? args[0] : args;
  const port = redirects[options?.port];
  if (port !== undefined) options.port = port;
  return connect.apply(this, args);
};
