import { constants } from "node:crypto";
import { connect as connectTcp, isIP, type Socket, type TcpNetConnectOpts } from "node:net";
import { type ConnectionOptions, connect as connectTls } from "node:tls";
import type { buildConnector } from "undici";
import { type AddressBlock, type AddressPolicy, classifyAddress, loopbackAddresses } from "../../common/http/address-guard.ts";
import type { Resolve } from "./resolver.ts";

/** Why there is no connection; `block` is set when and only when the address is what was wrong. */
export class ConnectionFailure extends Error {
  override readonly name = "ConnectionFailure";
  readonly detail: "dns" | "connect" | "tls" | "blocked_address";
  readonly block: AddressBlock | undefined;

  constructor(detail: ConnectionFailure["detail"], options: { cause?: unknown; block?: AddressBlock } = {}) {
    super(detail, { cause: options.cause });
    this.detail = detail;
    this.block = options.block;
  }
}

export interface ConnectorOptions {
  readonly policy: AddressPolicy;
  readonly resolve: Resolve;
}

/**
 * For one of several addresses. Node's 250 ms is less than a round trip to the other side of the world, and IPv6 that is not
 * there comes last: such a host could never be reached.
 */
const patienceMs = 800;

/** Of each kind. A name may have thousands of addresses, and each connection that is tried is a packet to somebody. */
const triedAddresses = 4;

type Callback = buildConnector.Callback;

/** Opens one connection; the socket is there at once, so that the attempt can be given up by destroying it. */
export type Connect = (target: buildConnector.Options, callback: Callback) => Socket | undefined;

/**
 * Connections for one origin that lead nowhere but to allowed addresses: a literal is judged before connecting, a name's addresses
 * all together when they are resolved (one bad one condemns the name), and the connection goes to a judged address, so a name that
 * answers differently the next moment gains nothing. The address that was reached is judged once more.
 */
export function createConnect(options: ConnectorOptions): Connect {
  let session: Buffer | undefined;
  return (target, callback) => {
    const block = isIP(target.hostname) === 0 ? undefined : classifyAddress(target.hostname, options.policy);
    if (block !== undefined) {
      queueMicrotask(() => callback(new ConnectionFailure("blocked_address", { block }), null));
      return undefined;
    }
    const secure = target.protocol === "https:";
    const socket = secure
      ? connectTls({ ...tcpOptions(target, options), ...tlsOptions(target, session) })
      : connectTcp(tcpOptions(target, options));
    if (secure) {
      socket.on("session", (ticket: Buffer) => {
        session = ticket;
      });
    }
    answer(socket, { secure, policy: options.policy, callback });
    return socket;
  };
}

/** Calls back once: with the socket when it is ready and leads where it may, else with the reason. */
function answer(
  socket: Socket,
  { secure, policy, callback }: { secure: boolean; policy: AddressPolicy; callback: Callback },
): void {
  let reached = false;
  const fail = (error: Error): void => {
    const unknown = new ConnectionFailure(reached ? "tls" : "connect", { cause: error });
    callback(error instanceof ConnectionFailure ? error : unknown, null);
  };
  socket.setNoDelay(true);
  socket.once("error", fail);
  socket.once("connect", () => {
    reached = true;
  });
  socket.once(secure ? "secureConnect" : "connect", () => {
    const failure = judgeReached(socket.remoteAddress, policy);
    if (failure !== undefined) return void socket.destroy(failure);
    socket.removeListener("error", fail);
    callback(null, socket);
  });
}

function judgeReached(address: string | undefined, policy: AddressPolicy): ConnectionFailure | undefined {
  // Reset again already.
  if (address === undefined) return new ConnectionFailure("connect");
  const block = classifyAddress(address, policy);
  return block === undefined ? undefined : new ConnectionFailure("blocked_address", { block });
}

function tcpOptions(target: buildConnector.Options, options: ConnectorOptions): TcpNetConnectOpts {
  return {
    host: target.hostname,
    port: Number(target.port) || (target.protocol === "https:" ? 443 : 80),
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: patienceMs,
    lookup: guardedLookup(options),
  };
}

function tlsOptions({ hostname }: buildConnector.Options, session: Buffer | undefined): ConnectionOptions {
  return {
    ALPNProtocols: ["http/1.1"],
    // Stands also where NODE_TLS_REJECT_UNAUTHORIZED is set to 0 for something else in the process.
    rejectUnauthorized: true,
    // Each costs a handshake, and a server may ask for as many as it likes.
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    ...(isIP(hostname) === 0 ? { servername: hostname.replace(/\.$/, "") } : {}),
    ...(session === undefined ? {} : { session }),
  };
}

type Lookup = NonNullable<TcpNetConnectOpts["lookup"]>;

/** Never called for a literal address. */
function guardedLookup({ policy, resolve }: ConnectorOptions): Lookup {
  return (hostname, _options, callback) => {
    judgedAddresses(hostname, policy, resolve).then(
      (addresses) =>
        callback(
          null,
          addresses.map((address) => ({ address, family: isIP(address) })),
        ),
      (error: Error) => callback(error, []),
    );
  };
}

async function judgedAddresses(hostname: string, policy: AddressPolicy, resolve: Resolve): Promise<readonly string[]> {
  const local = loopbackAddresses(hostname, policy);
  if (local?.length === 0) throw new ConnectionFailure("blocked_address", { block: "not_global_unicast" });
  if (local !== undefined) return local;
  const addresses = await resolve(hostname).catch((cause: unknown) => {
    throw new ConnectionFailure("dns", { cause });
  });
  const block = addresses.map((address) => classifyAddress(address, policy)).find((found) => found !== undefined);
  if (block !== undefined) throw new ConnectionFailure("blocked_address", { block });
  return [4, 6].flatMap((family) => addresses.filter((address) => isIP(address) === family).slice(0, triedAddresses));
}
