/** What is allowed in a configuration and still worth a word at the start. Pure. */
import type { Config } from './config.ts';

/** `/var/lib/kubelet`: with a longer root, paths grow beyond what drivers are used to (CSI asks for 128 bytes only). */
const ROOT_BYTES_ADVISED_MAX = 16;

export function warningsAbout({ root, drivers, metricsListen }: Config): readonly string[] {
  const warnings: string[] = [];
  const rootBytes = Buffer.byteLength(root);
  if (rootBytes > ROOT_BYTES_ADVISED_MAX)
    warnings.push(
      `root: "${root}" has ${rootBytes} bytes; above ${ROOT_BYTES_ADVISED_MAX} (as in /var/lib/kubelet) volume ` +
        'paths grow longer than some CSI drivers were ever tried with',
    );
  for (const [name, { forceFields }] of drivers) {
    if (!forceFields) continue;
    warnings.push(
      `drivers.${name}.force_fields: in quarantine this driver is sent fields of an unreleased CSI (pull 477): it ` +
        'may drop data that was not written yet, and a driver that knows other fields by these numbers may do anything',
    );
  }
  if (metricsListen !== undefined && !LOOPBACK.test(metricsListen.address))
    warnings.push(
      `metrics_listen: whoever can reach port ${metricsListen.port} of ${metricsListen.address} can read the names ` +
        'of volumes and claims',
    );
  return warnings;
}

const LOOPBACK = /^(?:127\.|::1$)/;
