/** What is said when a broker is lost. */
import { fail, type Result } from '../../../mount/failure.ts';

export const LOST: Result<never> = fail({ code: 'broker-lost', message: 'gone', effect: 'none' });
