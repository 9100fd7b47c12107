import { render } from "preact";
import "./style/tokens.css";
import "./style/pieces.css";
import "./style/shell.css";
import "./style/overview.css";
import "./style/table.css";
import "./style/inspector.css";
import "./style/graph.css";
import "./style/tensor.css";
import "./style/coverage.css";
import "./style/steps.css";
import "./style/events.css";
import "./style/narrow.css";
import { App } from "./app";

render(<App />, document.getElementById("page")!);
