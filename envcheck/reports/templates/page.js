(() => {
  "use strict";
  const say = document.createElement("p");
  say.setAttribute("role", "status");
  say.className = "unseen";
  if (navigator.clipboard) {
    document.querySelector("main").append(say);
    for (const block of document.querySelectorAll("pre.command")) {
      const button = document.createElement("button"), around = document.createElement("div");
      button.type = "button";
      button.className = "copy";
      button.textContent = "Copy";
      button.setAttribute("aria-label", "Copy these commands");
      button.addEventListener("click", async () => {
        let message = "Copied";
        try {
          await navigator.clipboard.writeText(block.textContent);
        } catch {
          message = "Not allowed";
        }
        button.textContent = say.textContent = message;
        setTimeout(() => { button.textContent = "Copy"; say.textContent = ""; }, 1600);
      });
      around.className = "copied";
      block.replaceWith(around);
      around.append(block, button);
    }
  }
})();
