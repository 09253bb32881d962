"""The web pages and the JSON API of one index (`app.create_app`), or the API alone (`api_app.create_api`).

Routes only parse requests and render what a reader returns.
"""
