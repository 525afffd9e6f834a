type Listener = () => void;

/** Node warns of a leak from the eleventh listener of a signal on. So each signal has one listener, for all calls. */
const LISTENERS = new WeakMap<AbortSignal, Set<Listener>>();

/** Calls `listener` when the signal is aborted. Returns a function that removes the listener. */
export function onAbort(signal: AbortSignal, listener: Listener): () => void {
  const listeners = LISTENERS.get(signal) ?? listenTo(signal);
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0 || LISTENERS.get(signal) !== listeners) return;
    LISTENERS.delete(signal);
    signal.removeEventListener('abort', callAll);
  };
}

function listenTo(signal: AbortSignal): Set<Listener> {
  const listeners = new Set<Listener>();
  LISTENERS.set(signal, listeners);
  signal.addEventListener('abort', callAll, { once: true });
  return listeners;
}

function callAll(this: AbortSignal): void {
  const listeners = LISTENERS.get(this) ?? [];
  LISTENERS.delete(this);
  for (const listener of listeners) listener();
}
