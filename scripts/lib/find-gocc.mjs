import { findProgram } from './install-package.mjs';
import { skipping } from './skipping.mjs';

/**
 * The `gocc` for the test of GoCC and Sluice behind one balancer. There is no package of it, so it is never installed.
 * Without one the path is empty, and one line says so.
 */
export function findGocc() {
  const path = findProgram('gocc');
  if (path) return path;
  skipping('gocc', 'GoCC and Sluice behind one balancer');
  return '';
}
