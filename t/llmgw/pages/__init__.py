"""What people read: pages in a browser, documents, tools.

  browser.py, dashboard.py, scene.py   Chromium; the dashboard; a made-up status
  document.py, commands.py, readme.py  what pages of docs say to type
  doctor.py                            what llmgwctl doctor says
  facts.py                             facts that a script in a root reports
"""
