/** The package carries no types. */
declare module 'cluster-key-slot' {
  /** The slot, from 0 to 16383, of a name in Redis Cluster. */
  export default function calculateSlot(name: string): number;
}
