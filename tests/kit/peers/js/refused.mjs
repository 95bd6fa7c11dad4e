// Is not let in.
import { connect } from "../../../../transports/footlights_transports/static/footlights.js";
import { options, print, refusal } from "./script.mjs";

print(await refusal(connect(options.url, { token: options.token })));
