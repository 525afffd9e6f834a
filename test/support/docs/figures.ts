/** How pages write numbers, sizes and times. */
export const grouped = (count: number): string => count.toLocaleString('en');
export const kib = (bytes: number): string => `${bytes / 1024} KiB`;
export const mib = (bytes: number): string => `${bytes / 1024 / 1024} MiB`;
export const seconds = (millis: number): string => `${millis / 1000} s`;
