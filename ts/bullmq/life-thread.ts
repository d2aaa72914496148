/**
 * A thread of a worker's child that ends the process when the worker is gone, however that ended. The child's
 * own thread may be busy for long; this one only listens at a pipe of which the worker holds the other end.
 */
import net from 'node:net';
import { lifeline } from './task.js';

const end = (): void => {
  process.kill(process.pid, 'SIGKILL');
};
const pipe = new net.Socket({ fd: lifeline, readable: true, writable: false });
pipe.once('end', end);
pipe.once('error', end);
pipe.resume();
